"""Images from archives: the command line, the daemon and the files on its disk."""

import gzip
import io
import lzma
import os
import signal
import struct
import subprocess
import tarfile
import threading

import pytest
from agxtest import archives
from agxtest.agbox import refused
from agxtest.server import wait_for
from image_fixtures import *  # noqa: F403
from image_fixtures import TIMEOUT_S

pytestmark = pytest.mark.deadline(120)

BASE = archives.tar(
    [("bin", None), ("bin/tool", b"#!/bin/tool\n"), ("old", b"x"), ("sh", "-> bin/tool")]
)
TOP = archives.tar([("etc", None), ("etc/motd", b"hello\n"), (".wh.old", b"")])
SETTINGS = {
    "User": "app",
    "Env": ["PATH=/bin"],
    "Entrypoint": ["/bin/tool"],
    "Cmd": ["serve"],
    "WorkingDir": "/srv",
    "ExposedPorts": {"80/tcp": {}},
    "StopSignal": "SIGINT",
    "Labels": {"team": "x"},
}
CONFIG_ID = archives.digest(archives.config([BASE, TOP], **SETTINGS))


def check_image(stage, name, ident=CONFIG_ID):
    """Checks that the image exists, with its configuration and its files."""
    found = stage.inspect(name)
    assert found["image"]["id"] == ident
    config = found["config"]
    assert (config["user"], config["env"], config["working_dir"]) == ("app", ["PATH=/bin"], "/srv")
    assert (config["entrypoint"], config["command"]) == (["/bin/tool"], ["serve"])
    assert (config["exposed_ports"], config["stop_signal"]) == (["80/tcp"], "SIGINT")
    assert (config["labels"], config["architecture"]) == ({"team": "x"}, "amd64")
    assert found["layers"] == [archives.digest(BASE), archives.digest(TOP)]
    layers = stage.layers()
    assert set(layers) == set(found["layers"])
    base, top = (layers[each] for each in found["layers"])
    assert (base / "bin" / "tool").read_bytes() == b"#!/bin/tool\n"
    assert os.readlink(base / "sh") == "bin/tool"
    assert (top / "etc" / "motd").read_bytes() == b"hello\n"
    stage.settles()


def write(path, data):
    path.write_bytes(data)
    return path


# ---- the forms


def test_what_docker_save_writes(stage, tmp_path):
    saved = archives.docker_save((["tool:1", "r:5000/team/tool:2"], [BASE, TOP], SETTINGS))
    done = stage.run("import", write(tmp_path / "a.tar", saved))
    assert (done.returncode, done.stdout) == (0, f"{CONFIG_ID}\n"), done.stderr
    check_image(stage, "tool:1")
    check_image(stage, "r:5000/team/tool:2")
    check_image(stage, CONFIG_ID)
    check_image(stage, CONFIG_ID[7:])
    assert stage.names() == ["docker.io/library/tool:1", "r:5000/team/tool:2"]


def test_an_oci_layout_as_a_tar_and_as_a_directory(stage, tmp_path):
    packed = archives.oci_tar("tool:1", [BASE, TOP], **SETTINGS)
    assert (
        stage.ok("import", write(tmp_path / "a.tar", packed), "--name", "one") == f"{CONFIG_ID}\n"
    )
    check_image(stage, "one")
    top = archives.oci_directory(tmp_path / "layout", "tool:1", [BASE, TOP], **SETTINGS)
    assert stage.ok("import", top, "--name", "two") == f"{CONFIG_ID}\n"
    check_image(stage, "two")
    (image,) = stage.list()
    assert {"docker.io/library/one:latest", "docker.io/library/two:latest"} <= set(image["names"])
    assert image["digest"].startswith("sha256:")


def zstd(data):
    """A frame of blocks that are not compressed: its size, then each block after its header."""
    out = b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(data))
    for at in range(0, len(data), 1 << 16):
        block = data[at : at + (1 << 16)]
        last = at + len(block) == len(data)
        out += struct.pack("<I", len(block) << 3 | last)[:3] + block
    return out


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, zstd])
def test_a_root_file_system_as_a_tar(stage, tmp_path, pack):
    ident = stage.ok("import", write(tmp_path / "root", pack(BASE)), "--name", "root").strip()
    found = stage.inspect("root")
    assert found["image"]["id"] == ident
    assert found["layers"] == [archives.digest(BASE)]
    (layer,) = stage.layers().values()
    assert (layer / "bin" / "tool").exists()


def test_a_root_file_system_as_a_directory(stage, tmp_path):
    top = tmp_path / "root"
    (top / "etc").mkdir(parents=True)
    (top / "etc" / "motd").write_text("hello\n")
    (top / "etc" / "motd").chmod(0o4711)
    os.link(top / "etc" / "motd", top / "same")
    (top / "link").symlink_to("/etc/shadow")
    stage.ok("import", top, "--name", "root")
    (layer,) = stage.layers().values()
    assert (layer / "etc" / "motd").read_text() == "hello\n"
    assert (layer / "etc" / "motd").stat().st_mode & 0o7777 == 0o4711
    assert (layer / "etc" / "motd").samefile(layer / "same")
    assert os.readlink(layer / "link") == "/etc/shadow"


def test_standard_input(stage):
    saved = archives.docker_save((["tool:1"], [BASE, TOP], SETTINGS))
    assert stage.ok("import", "-", data=gzip.compress(saved)) == f"{CONFIG_ID}\n"
    check_image(stage, "tool:1")


def test_a_root_file_system_without_a_name_is_known_by_its_id(stage):
    ident = stage.ok("import", "-", data=BASE).strip()
    (image,) = stage.list()
    assert (image["id"], image["names"]) == (ident, [])
    assert stage.inspect(ident)["image"]["id"] == ident


def test_several_images_in_one_archive(stage):
    other = archives.tar([("other", b"y")])
    saved = archives.docker_save((["a"], [BASE], {}), (["b"], [BASE, other], {}))
    ids = stage.ok("import", "-", data=saved).split()
    assert len(set(ids)) == 2
    assert stage.names() == ["docker.io/library/a:latest", "docker.io/library/b:latest"]
    assert len(stage.layers()) == 2
    # Two images cannot have the same name.
    before = stage.names()
    assert "2 images" in stage.fails("import", "-", "--name", "c", data=saved)
    assert stage.names() == before


def test_the_same_again_changes_nothing(stage):
    saved = archives.docker_save((["tool:1"], [BASE, TOP], SETTINGS))
    for _ in range(3):
        assert stage.ok("import", "-", data=saved) == f"{CONFIG_ID}\n"
    check_image(stage, "tool:1")
    assert len(stage.list()) == 1


def test_a_name_goes_to_the_newer_image(stage):
    stage.ok("import", "-", "--name", "tool:1", data=BASE)
    ident = stage.ok("import", "-", "--name", "tool:1", data=TOP).strip()
    assert stage.inspect("tool:1")["image"]["id"] == ident
    assert sorted(len(image["names"]) for image in stage.list()) == [0, 1]
    assert ident not in stage.ok("prune")
    assert [image["id"] for image in stage.list()] == [ident]
    assert set(stage.layers()) == {archives.digest(TOP)}


def test_the_newest_is_listed_first(stage):
    first = stage.ok("import", "-", "--name", "first", data=BASE).strip()
    second = stage.ok("import", "-", "--name", "second", data=TOP).strip()
    assert [image["id"] for image in stage.list()] == [second, first]


def test_several_at_a_time_share_their_layers(stage):
    saved = archives.docker_save((["tool:1"], [BASE, TOP], SETTINGS))
    done = []
    threads = [
        threading.Thread(target=lambda: done.append(stage.run("import", "-", data=saved)))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.stdout for each in done] == [f"{CONFIG_ID}\n"] * 6, [d.stderr for d in done]
    check_image(stage, "tool:1")


# ---- files that are not archives, and harmful archives


def bomb(size):
    """So many zeros, compressed to a thousandth of their size."""
    entry, out = tarfile.TarInfo("zeros"), io.BytesIO()
    entry.size = size
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9, mtime=0) as packed:
        packed.write(entry.tobuf())
        for _ in range(entry.size >> 20):
            packed.write(bytes(1 << 20))
    return out.getvalue()


HOSTILE = {
    "dots": [("../outside", b"x")],
    "dots_inside": [("a", None), ("a/../../outside", b"x")],
    "absolute": [("/outside", b"x")],
    "symlink_parent": [("a", "-> ../../../../.."), ("a/outside", b"x")],
    "absolute_symlink_parent": [("a", "-> /tmp"), ("a/outside", b"x")],
    "hard_link_outside": [("a", "=> ../../../../../etc/passwd")],
    "hard_link_absolute": [("a", "=> /etc/passwd")],
    "hard_link_through_symlink": [("a", "-> /etc"), ("b", "=> a/passwd")],
}


def check_refused(stage, tmp_path, data, *words):
    """Checks that the import is refused and leaves nothing behind."""
    stage.settles()
    layers, around = stage.layers(), set(tmp_path.iterdir())
    said = stage.fails("import", "-", *words, data=data)
    # The answer does not wait for the removal.
    wait_for(lambda: stage.layers() == layers, "no layer of it is there", TIMEOUT_S)
    stage.settles()
    assert set(tmp_path.iterdir()) == around
    return said


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("form", ["root", "docker", "oci"])
def test_a_hostile_layer_is_refused_and_nothing_stays(stage, tmp_path, kind, form):
    layer = archives.tar(HOSTILE[kind])
    data = {
        "root": lambda: layer,
        "docker": lambda: archives.docker_save((["evil"], [BASE, layer], {})),
        "oci": lambda: archives.oci_tar("evil", [BASE, layer]),
    }[form]()
    said = check_refused(stage, tmp_path, data)
    assert said.startswith("agentix: ")
    assert stage.is_empty()
    assert stage.daemon.process.poll() is None
    # The valid part of it is accepted in another archive.
    stage.ok("import", "-", "--name", "good", data=BASE)


def test_a_bomb_is_refused_and_nothing_stays(start_stage, tmp_path):
    stage = start_stage({"images": {"layer_max": "32m"}})
    assert check_refused(stage, tmp_path, bomb(128 << 20))
    assert stage.is_empty()


def test_an_archive_over_the_limit_is_refused(start_stage, tmp_path):
    stage = start_stage({"images": {"import_max": "64k", "layer_entries": 10}})
    said = check_refused(stage, tmp_path, archives.tar([("a", bytes(100000))]))
    assert "65536" in said or "64" in said
    many = archives.tar([(f"f{n}", b"") for n in range(11)])
    assert "10" in check_refused(stage, tmp_path, many)
    assert stage.is_empty()
    stage.ok("import", "-", data=archives.tar([("a", bytes(1000))]))


BROKEN = {
    "empty": b"",
    "zeros": bytes(4096),
    "noise": bytes(range(256)) * 64,
    "text": b"this is no archive\n" * 100,
    "cut_tar": BASE[:700],
    "cut_gzip": gzip.compress(os.urandom(100000))[:5000],
    "missing_config": archives.tar(
        [("manifest.json", b'[{"Config": "none", "RepoTags": ["x:1"], "Layers": []}]')]
    ),
    "missing_layer": archives.tar(
        [
            ("c.json", archives.config([BASE])),
            (
                "manifest.json",
                b'[{"Config": "c.json", "RepoTags": ["x:1"], "Layers": ["none/layer.tar"]}]',
            ),
        ]
    ),
    "config_outside": archives.tar(
        [
            (
                "manifest.json",
                b'[{"Config": "../../../../etc/passwd", "RepoTags": ["x:1"], "Layers": []}]',
            ),
        ]
    ),
    "layer_of_another_digest": archives.tar(
        [
            ("c.json", archives.config([BASE])),
            ("l.tar", TOP),
            ("manifest.json", b'[{"Config": "c.json", "RepoTags": ["x:1"], "Layers": ["l.tar"]}]'),
        ]
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_what_is_no_archive_is_refused_and_nothing_stays(stage, tmp_path, kind):
    assert check_refused(stage, tmp_path, BROKEN[kind]).startswith("agentix: ")
    assert stage.is_empty()


def test_a_name_that_is_none_is_refused(stage, tmp_path):
    assert "UPPER" in check_refused(stage, tmp_path, BASE, "--name", "UPPER/case")
    assert stage.is_empty()


# ---- the wire


def test_a_stream_without_a_message_is_refused(stage):
    assert refused(stage.stub().ImportImage, []).code == "INVALID_ARGUMENT"


def test_a_name_in_a_later_message_is_refused(stage):
    requests = [{"name": "a", "data": BASE[:512]}, {"name": "b", "data": BASE[512:]}]
    found = refused(stage.stub().ImportImage, requests)
    assert (found.code, "name" in found.message) == ("INVALID_ARGUMENT", True)
    assert stage.is_empty()


def test_messages_of_any_size_are_one_stream(stage):
    pieces = [{"name": "tool"}, {}] + [
        {"data": BASE[at : at + 100]} for at in range(0, len(BASE), 100)
    ]
    (image,) = stage.stub().ImportImage(pieces).images
    assert list(image.names) == ["docker.io/library/tool:latest"]


def test_refusals_have_reasons_for_programs(stage):
    stub = stage.stub()
    for call in (stub.InspectImage, stub.RemoveImage):
        found = refused(call, image="nobody/has:it")
        assert (found.code, found.reason) == ("NOT_FOUND", "IMAGE_NOT_FOUND")
        assert found.metadata == {"image": "nobody/has:it"}
        assert refused(call, image="").code == "INVALID_ARGUMENT"
        assert refused(call, image="NOT A NAME").code == "INVALID_ARGUMENT"


# ---- removing


def test_rm_by_name_and_by_id(stage):
    saved = archives.docker_save((["a:1", "b:1"], [BASE, TOP], SETTINGS))
    stage.ok("import", "-", data=saved)
    stage.ok("import", "-", "--name", "base", data=BASE)
    assert stage.ok("rm", "a:1").splitlines()[0] == "Untagged docker.io/library/a:1"
    check_image(stage, "b:1")
    said = stage.ok("rm", "b:1")
    assert "Untagged docker.io/library/b:1" in said and f"Deleted {CONFIG_ID}" in said
    assert "agentix image list" in stage.fails("inspect", "b:1")
    # Another image uses its lower layer too.
    stage.settles()
    assert set(stage.layers()) == {archives.digest(BASE)}
    stage.ok("rm", stage.inspect("base")["image"]["id"])
    stage.settles()
    assert stage.is_empty()
    assert "agentix image list" in stage.fails("rm", "base")


def test_the_empty_image_is_always_there(stage):
    assert stage.inspect("scratch")["layers"] == []
    assert stage.list() == []
    stage.fails("rm", "scratch")


# ---- interruptions


class Slow:
    """An import whose bytes the test writes."""

    def __init__(self, stage, *words):
        self.stage = stage
        self.process = stage.start("import", "-", *words, stdin=subprocess.PIPE)

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def end(self, signo=None):
        """(exit status, its last line)."""
        if signo:
            self.process.send_signal(signo)
        _, said = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, (said.decode().splitlines() or [""])[-1]


LARGE = archives.tar([("large", os.urandom(8 << 20))])


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_import_that_is_interrupted_leaves_nothing(stage, signo):
    slow = Slow(stage)
    slow.write(LARGE[: 5 << 20])
    wait_for(lambda: stage.spooled() > 1 << 20, "the daemon has the beginning")
    status, said = slow.end(signo)
    if signo != signal.SIGKILL:
        assert (status, "nothing was imported" in said) == (128 + signo, True)
    wait_for(lambda: stage.spooled() == 0, "the daemon let go of it")
    stage.settles()
    assert stage.is_empty()


def many_files():
    """An image that takes longer to unpack than two looks take."""
    return archives.tar(
        [
            (f"d{n // 100}/f{n}" if n % 100 else f"d{n // 100}", b"x" if n % 100 else None)
            for n in range(10000)
        ]
    )


def test_an_import_that_is_interrupted_while_it_is_unpacked_leaves_nothing(stage, tmp_path):
    process = stage.start("import", write(tmp_path / "many.tar", many_files()))
    wait_for(lambda: stage.in_the_making() or process.poll() is not None, "it is being unpacked")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=TIMEOUT_S)
    stage.settles()
    if process.returncode != 0:  # else it was quicker than we
        assert process.returncode == 128 + signal.SIGINT
        wait_for(stage.is_empty, "nothing is left")


def test_a_daemon_that_is_killed_while_bytes_come_leaves_nothing(stage):
    slow = Slow(stage)
    slow.write(LARGE[: 5 << 20])
    wait_for(lambda: stage.spooled() > 1 << 20, "the daemon has the beginning")
    stage.daemon.kill()
    status, said = slow.end()
    assert status == 1 and "agentix daemon status" in said
    stage.daemon.start()
    wait_for(stage.is_empty, "what it left is removed")
    stage.ok("import", "-", "--name", "again", data=LARGE)
    assert stage.names() == ["docker.io/library/again:latest"]


def test_a_daemon_that_is_killed_while_it_unpacks_leaves_nothing(stage, tmp_path):
    stage.ok("import", "-", "--name", "before", data=BASE)
    path = write(tmp_path / "many.tar", many_files())
    process = stage.start("import", path)
    wait_for(lambda: stage.in_the_making() or process.poll() is not None, "it is being unpacked")
    stage.daemon.kill()
    process.communicate(timeout=TIMEOUT_S)
    stage.daemon.start()
    assert stage.names() == ["docker.io/library/before:latest"]
    if len(stage.list()) == 1:  # else it was quicker than we
        assert process.returncode != 0
        wait_for(lambda: set(stage.layers()) == {archives.digest(BASE)}, "its layer is gone")
        stage.settles()
    stage.ok("import", path, "--name", "again")
    assert "docker.io/library/again:latest" in stage.names()


def test_images_are_there_after_a_crash(stage):
    stage.ok("import", "-", data=archives.docker_save((["tool:1"], [BASE, TOP], SETTINGS)))
    before = stage.list()
    stage.daemon.restart()
    assert stage.list() == before
    check_image(stage, "tool:1")


def test_an_import_does_not_hold_up_the_end_of_the_daemon(stage):
    slow = Slow(stage)
    slow.write(LARGE[: 5 << 20])
    wait_for(lambda: stage.spooled() > 1 << 20, "the daemon has the beginning")
    stage.daemon.stop()
    assert slow.end()[0] == 1
    stage.daemon.start()
    wait_for(stage.is_empty, "what it left is removed")
