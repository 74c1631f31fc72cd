"""Images from a registry on the loopback: the command line, the daemon, the files on its disk."""

import base64
import json
import os
import pty
import signal
import threading
from pathlib import Path

import pytest
from agxtest import archives
from agxtest.agbox import refused
from agxtest.server import wait_for
from image_fixtures import *  # noqa: F403
from image_fixtures import TIMEOUT_S

pytestmark = pytest.mark.deadline(120)

LAYER_BYTES = 2_000_000


def layer(name):
    """A layer with a file that cannot be compressed."""
    return archives.tar([(name, os.urandom(LAYER_BYTES))])


def add_image(registry, name="box"):
    return registry.add(name, "1", layer("one"), layer("two"))


def test_pull_stores_the_image(stage, registry):
    layers = layer("one"), layer("two")
    name = registry.add("box", "1", *layers)
    done = stage.run("pull", name)
    assert done.returncode == 0, done.stderr
    first, last = done.stderr.splitlines()
    assert first == f"Pulling {name}..." and last.startswith("Image ready in ")
    found = stage.inspect(name)
    assert done.stdout == found["image"]["id"] + "\n"
    assert found["image"]["names"] == [name]
    assert found["layers"] == [archives.digest(each) for each in layers]
    assert set(stage.layers()) == set(found["layers"])
    assert len((stage.layers()[found["layers"][0]] / "one").read_bytes()) == LAYER_BYTES
    stage.settles()


def test_pull_again_fetches_nothing_but_what_is_new(stage, registry):
    base = layer("base")
    old = stage.ok("pull", registry.add("box", "1", base))
    assert stage.ok("pull", f"{registry.host}/box:1") == old
    new = stage.ok("pull", registry.add("box", "1", base, layer("more")))
    assert new != old
    assert len(stage.layers()) == 2
    # The new image has the name; the old one has none.
    assert old.strip() in stage.ok("prune")
    assert [image["id"] for image in stage.list()] == [new.strip()]


def test_pull_by_digest(stage, registry):
    name = add_image(registry)
    digest = archives.digest(registry.manifests["box", "1"])
    ident = stage.ok("pull", f"{registry.host}/box@{digest}")
    assert stage.ok("pull", name) == ident


def test_pull_tells_how_far_it_is(stage, registry):
    registry.piece_seconds = 0.02
    name = add_image(registry)
    messages = list(stage.stub().PullImage(image=name))
    assert messages[-1].image.names == [name]
    progress = [each.progress for each in messages[:-1]]
    assert all(each.image == name or each.image.endswith("box:1") for each in progress)
    assert progress and progress[-1].layers_total == 2
    done = [each.bytes_done for each in progress]
    assert done == sorted(done) and done[-1] <= progress[-1].bytes_total


def test_pull_on_a_terminal_shows_a_bar(stage, registry):
    registry.piece_seconds = 0.02
    ours, theirs = pty.openpty()
    got = []

    def read():
        try:
            while data := os.read(ours, 65536):
                got.append(data)
        except OSError:
            pass

    process = stage.start("pull", add_image(registry), stderr=theirs)
    os.close(theirs)
    reader = threading.Thread(target=read)
    reader.start()
    process.communicate(timeout=TIMEOUT_S)
    reader.join()
    os.close(ours)
    assert process.returncode == 0
    assert b"] Pulling " in b"".join(got)


def test_two_who_want_the_same_share_one_pull(stage, registry):
    registry.piece_seconds = 0.01
    name, done = add_image(registry), []
    threads = [
        threading.Thread(target=lambda: done.append(stage.run("pull", name))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({each.stdout for each in done}) == 1, [each.stderr for each in done]
    assert len(stage.layers()) == 2
    stage.settles()


# ---- what goes wrong


def test_an_image_that_the_registry_has_not(stage, registry):
    said = stage.fails("pull", f"{registry.host}/none:1")
    assert "none" in said and "agentix daemon" not in said
    found = refused(stage.stub().PullImage, image=f"{registry.host}/none:1")
    assert (found.code, found.reason) == ("NOT_FOUND", "IMAGE_PULL_FAILED")
    assert stage.is_empty()


def test_a_registry_that_is_not_there(stage, registry):
    host = registry.host
    registry.close()
    said = stage.fails("pull", f"{host}/box:1")
    assert host in said and "agentix daemon" not in said


def test_a_name_that_is_none(stage):
    assert refused(stage.stub().PullImage, image="NOT A NAME").code == "INVALID_ARGUMENT"
    assert refused(stage.stub().PullImage, image="").code == "INVALID_ARGUMENT"


def test_bytes_of_another_digest_are_refused(stage, registry):
    name = add_image(registry)
    victim = max(registry.blobs, key=lambda each: len(registry.blobs[each]))
    blob = bytearray(registry.blobs[victim])
    blob[len(blob) // 2] ^= 1
    registry.blobs[victim] = bytes(blob)
    assert victim[:19] in stage.fails("pull", name) or "digest" in stage.fails("pull", name)
    stage.settles()
    wait_for(stage.is_empty, "nothing is left")


def configure_docker(stage, registry, user):
    """`docker login` as the daemon's user."""
    directory = stage.daemon.place.home / ".docker"
    directory.mkdir(parents=True, exist_ok=True)
    secret = base64.b64encode(":".join(user).encode()).decode()
    text = json.dumps({"auths": {registry.host: {"auth": secret}}})
    (directory / "config.json").write_text(text)


def test_a_registry_that_wants_credentials(stage, registry):
    registry.user = ("me", "secret")
    name = add_image(registry)
    found = refused(stage.stub().PullImage, image=name)
    assert found.code in ("UNAUTHENTICATED", "PERMISSION_DENIED"), found
    configure_docker(stage, registry, ("me", "wrong"))
    assert "secret" not in stage.fails("pull", name)
    configure_docker(stage, registry, registry.user)
    stage.ok("pull", name)
    assert "secret" not in stage.daemon.log()


# ---- interruptions


def slow_pull(stage, registry):
    """A pull that has received some bytes, and gets no more until the test allows it."""
    registry.piece_seconds = 600
    name = add_image(registry)
    process = stage.start("pull", name)
    wait_for(lambda: stage.spooled() > 0, "bytes come")
    return name, process


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGKILL])
def test_a_pull_that_is_interrupted_leaves_nothing(stage, registry, signo):
    name, process = slow_pull(stage, registry)
    process.send_signal(signo)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode != 0
    wait_for(lambda: stage.spooled() == 0, "the daemon let go of it")
    stage.settles()
    wait_for(stage.is_empty, "nothing is left")
    registry.piece_seconds = 0
    stage.ok("pull", name)


def test_one_who_leaves_does_not_end_the_pull_of_the_other(stage, registry):
    name, first = slow_pull(stage, registry)
    second = stage.start("pull", name)
    wait_for(lambda: second.poll() is not None or len(calls(stage)) >= 2, "both wait")
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=TIMEOUT_S)
    registry.piece_seconds = 0
    out, err = second.communicate(timeout=TIMEOUT_S)
    assert second.returncode == 0, err
    assert out.decode().strip() == stage.inspect(name)["image"]["id"]


def calls(stage):
    """The number of connections to the daemon's socket, except our own."""
    lines = Path("/proc/net/unix").read_text().splitlines()
    return [each for each in lines if each.split()[5:8:2] == ["03", str(stage.daemon.socket)]]


def test_a_daemon_that_is_killed_in_the_middle_leaves_nothing(stage, registry):
    name, process = slow_pull(stage, registry)
    stage.daemon.kill()
    _, said = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1 and b"agentix daemon status" in said
    stage.daemon.start()
    wait_for(stage.is_empty, "what it left is removed")
    registry.piece_seconds = 0
    stage.ok("pull", name)
    assert stage.names() == [name]


def test_a_pull_does_not_hold_up_the_end_of_the_daemon(stage, registry):
    _, process = slow_pull(stage, registry)
    stage.daemon.stop()
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1
    stage.daemon.start()
    wait_for(stage.is_empty, "what it left is removed")
