"""agentix image against a scripted daemon."""

import io
import json
import os
import re
import signal
import subprocess
import tarfile
import threading
from pathlib import Path

import grpc
import pytest
from agxtest.cli import TIMEOUT_S, interrupt
from agxtest.fake_daemon import Refusal
from cli_fixtures import fixture_cli, fixture_fake  # noqa: F401

ID = "sha256:" + "0123456789abcdef" * 4
OTHER = "sha256:" + "fedcba9876543210" * 4
PYTHON = "docker.io/library/python:3.13"
CODES = grpc.StatusCode
MANUAL = (Path(__file__).parents[2] / "docs" / "man" / "agentix-image.1").read_text()


def image(fake, ident=ID, names=(PYTHON,), **fields):
    made = fake.messages.Image(id=ident, names=names, size_bytes=12345678, **fields)
    made.added_at.GetCurrentTime()
    return made


def answer(fake, method, response):
    fake.methods[method] = lambda request, context: response


def refuse(fake, method, code, text, reason=None):
    def refusing(_request, _context):
        raise Refusal(code, text, reason)

    fake.methods[method] = refusing


# ---- list, inspect, rm, prune


def test_list_shows_a_line_for_each_name(cli, fake):
    images = [image(fake, names=[PYTHON, "r:5000/tool:1"], sandboxes=2), image(fake, OTHER, [])]
    answer(fake, "ListImages", fake.messages.ListImagesResponse(images=images))
    done = cli.run("image", "list")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["NAME", "IMAGE", "ID", "ADDED", "SIZE", "SANDBOXES"]
    assert [line[:2] for line in lines[1:]] == [
        [PYTHON, "0123456789ab"],
        ["r:5000/tool:1", "0123456789ab"],
        ["-", "fedcba987654"],
    ]
    assert lines[1][-3:] == ["12.3", "MB", "2"]


def test_list_of_nothing_is_the_titles(cli, fake):
    answer(fake, "ListImages", fake.messages.ListImagesResponse())
    done = cli.run("image", "list")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1)


def test_list_as_json_has_all_of_it(cli, fake):
    answer(fake, "ListImages", fake.messages.ListImagesResponse(images=[image(fake)]))
    (listed,) = json.loads(cli.run("image", "list", "--json").stdout)["images"]
    assert (listed["id"], listed["names"], listed["size_bytes"]) == (ID, [PYTHON], "12345678")


def test_what_a_terminal_would_obey_is_escaped(cli, fake):
    images = [image(fake, names=["evil\x1b[31m"])]
    answer(fake, "ListImages", fake.messages.ListImagesResponse(images=images))
    assert "evil\\u{1b}[31m" in cli.run("image", "list").stdout


def test_inspect_shows_a_line_for_each_value(cli, fake):
    config = fake.messages.ImageConfig(
        user="app",
        env=["PATH=/bin", "A=b"],
        entrypoint=["/entry", "--now"],
        command=["serve"],
        working_dir="/srv",
        exposed_ports=["80/tcp"],
        stop_signal="SIGINT",
        labels={"team": "x"},
        architecture="amd64",
        created="2026-01-31T00:00:00Z",
    )
    config.healthcheck.test.extend(["CMD", "true"])
    response = fake.messages.InspectImageResponse(
        image=image(fake, digest="sha256:77"), config=config, layers=["sha256:1", "sha256:2"]
    )
    answer(fake, "InspectImage", response)
    done = cli.run("image", "inspect", "python:3.13")
    assert (done.returncode, fake.requests[0][1].image) == (0, "python:3.13")
    lines = done.stdout.splitlines()
    assert lines[:3] == [f"id={ID}", f"name={PYTHON}", "digest=sha256:77"]
    assert lines[3].startswith("added_at=20")
    assert lines[4:] == [
        "size_bytes=12345678",
        "sandboxes=0",
        "created=2026-01-31T00:00:00Z",
        "architecture=amd64",
        "user=app",
        "working_dir=/srv",
        "entrypoint=/entry --now",
        "command=serve",
        "stop_signal=SIGINT",
        "healthcheck=CMD true",
        "env=PATH=/bin",
        "env=A=b",
        "exposed_port=80/tcp",
        "label=team=x",
        "layer=sha256:1",
        "layer=sha256:2",
    ]
    printed = json.loads(cli.run("image", "inspect", "python:3.13", "--json").stdout)
    assert printed["config"]["entrypoint"] == ["/entry", "--now"]


@pytest.mark.parametrize("command, method", [("inspect", "InspectImage"), ("rm", "RemoveImage")])
def test_an_image_that_is_not_there_says_where_to_look(cli, fake, command, method):
    refuse(fake, method, CODES.NOT_FOUND, "there is no image 'x'", "IMAGE_NOT_FOUND")
    done = cli.run("image", command, "x")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "agentix: there is no image 'x'; `agentix image list` shows the existing ones\n"
    )


def test_rm_says_what_is_gone(cli, fake):
    removed = fake.messages.RemovedImages(names=[PYTHON], ids=[ID], bytes=1500)
    answer(fake, "RemoveImage", fake.messages.RemoveImageResponse(removed=removed))
    done = cli.run("image", "rm", "python:3.13")
    assert (done.returncode, fake.requests[0][1].image) == (0, "python:3.13")
    assert done.stdout == f"Untagged {PYTHON}\nDeleted {ID}\nFreed 1.5 kB.\n"
    assert json.loads(cli.run("image", "rm", "x", "--json").stdout)["removed"]["ids"] == [ID]


def test_rm_of_an_image_in_use_says_what_to_do(cli, fake):
    refuse(fake, "RemoveImage", CODES.FAILED_PRECONDITION, "2 sandboxes use it", "IMAGE_IN_USE")
    done = cli.run("image", "rm", "x")
    assert done.returncode == 1 and "agentix sandbox delete" in done.stderr


def test_prune_says_what_is_gone(cli, fake):
    removed = fake.messages.RemovedImages(ids=[ID, OTHER], bytes=0)
    answer(fake, "PruneImages", fake.messages.PruneImagesResponse(removed=removed))
    done = cli.run("image", "prune")
    assert (done.returncode, done.stdout) == (0, f"Deleted {ID}\nDeleted {OTHER}\nFreed 0 B.\n")
    assert len(json.loads(cli.run("image", "prune", "--json").stdout)["removed"]["ids"]) == 2


def test_a_daemon_of_before_images_is_named(cli, fake):
    done = cli.run("image", "list")
    assert done.returncode == 1 and "agentix daemon stop" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nothing"],
        ["pull"],
        ["pull", "a", "b"],
        ["import"],
        ["list", "x"],
        ["inspect"],
        ["rm"],
        ["prune", "x"],
        ["pull", "--nothing", "a"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_exit_status_2(cli, words):
    done = cli.run("image", *words)
    assert (done.returncode, done.stdout) == (2, "") and "usage:" in done.stderr


def test_help_is_there_for_each_command(cli):
    for command in ("pull", "import", "list", "inspect", "rm", "prune"):
        done = cli.run("help", "image", command)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"usage: agentix image {command} ")
        assert max(map(len, done.stdout.splitlines())) <= 100
        assert f".Nm agentix image {command}" in MANUAL
        for option in re.findall(r"--([a-z-]+)", done.stdout):
            assert f"Fl -{option}" in MANUAL, option


# ---- pull


def pulling(fake, *steps):
    """`steps`: (layers done, bytes done) of 2 layers, 40 MB."""

    def method(request, _context):
        for layers, done in steps:
            progress = fake.messages.PullProgress(
                image=request.image,
                layers_done=layers,
                layers_total=2,
                bytes_done=done,
                bytes_total=40000000,
            )
            yield fake.messages.PullImageResponse(progress=progress)
        yield fake.messages.PullImageResponse(image=image(fake))

    fake.methods["PullImage"] = method


def test_pull_prints_the_id(cli, fake):
    pulling(fake, (0, 0), (1, 20000000))
    done = cli.run("image", "pull", "python:3.13")
    assert (done.returncode, done.stdout) == (0, f"{ID}\n")
    first, last = done.stderr.splitlines()
    assert first == "Pulling python:3.13..."
    assert last.startswith("Image ready in ") and last.endswith("s, 12.3 MB.")
    assert fake.requests[0][1].image == "python:3.13"


def test_pull_as_json(cli, fake):
    pulling(fake, (0, 0))
    done = cli.run("image", "pull", "python:3.13", "--json")
    assert json.loads(done.stdout)["image"]["id"] == ID


def test_pull_shows_on_a_terminal_how_far_it_is(cli, fake):
    pulling(fake, (1, 20000000))
    status, stdout, seen = cli.run_on_terminal("image", "pull", "python:3.13")
    assert (status, stdout) == (0, f"{ID}\n")
    assert "[=====>    ] Pulling python:3.13: 1/2 layers, 20.0/40.0 MB" in seen


def test_pull_that_fails_says_why_and_blames_nobody_else(cli, fake):
    text = "connect to 'registry:5000': connection refused"
    refuse_stream(fake, CODES.UNAVAILABLE, text, "IMAGE_PULL_FAILED")
    done = cli.run("image", "pull", "registry:5000/x")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == f"agentix: {text}"


def refuse_stream(fake, code, text, reason):
    def method(_request, _context):
        raise Refusal(code, text, reason)
        yield  # a generator

    fake.methods["PullImage"] = method


def test_pull_without_an_image_at_its_end_is_an_error(cli, fake):
    fake.methods["PullImage"] = lambda request, context: iter(())
    done = cli.run("image", "pull", "x")
    assert done.returncode == 1 and "without an image" in done.stderr


def test_pull_that_is_interrupted_cancels_the_call(cli, fake):
    began, gone = threading.Event(), threading.Event()

    def method(request, context):
        context.add_callback(gone.set)
        began.set()
        yield fake.messages.PullImageResponse(progress={"image": request.image})
        gone.wait(TIMEOUT_S)

    fake.methods["PullImage"] = method
    process = cli.start("image", "pull", "x")
    assert began.wait(TIMEOUT_S)
    status, _, _ = interrupt(process)
    assert status == -signal.SIGINT
    assert gone.wait(TIMEOUT_S)


# ---- import


def importing(fake):
    """The received imports, as (names, bytes)."""
    got = []

    def method(requests, _context):
        got.append(([r.name for r in requests], b"".join(r.data for r in requests)))
        return fake.messages.ImportImageResponse(images=[image(fake)])

    fake.methods["ImportImage"] = method
    return got


@pytest.mark.parametrize("size", [0, 1, 262144, 262145, 5000000])
def test_import_sends_a_file_in_pieces(cli, fake, tmp_path, size):
    got, data = importing(fake), os.urandom(size)
    (tmp_path / "a.tar").write_bytes(data)
    done = cli.run("image", "import", tmp_path / "a.tar", "--name", "tool:1")
    assert (done.returncode, done.stdout) == (0, f"{ID}\n")
    assert done.stderr.splitlines()[-1].startswith("Image ready in ")
    ((names, sent),) = got
    assert sent == data
    assert names[:1] == ["tool:1"][: len(names)] and set(names[1:]) <= {""}


def test_import_reads_standard_input(cli, fake):
    got, data = importing(fake), os.urandom(3000000)
    done = cli.run("image", "import", "-", text=False, input=data)
    assert (done.returncode, done.stdout.decode()) == (0, f"{ID}\n")
    assert got[0][1] == data and set(got[0][0]) == {""}


def test_import_of_several_images_prints_all_ids(cli, fake, tmp_path):
    two = fake.messages.ImportImageResponse(images=[image(fake), image(fake, OTHER, [])])
    answer(fake, "ImportImage", two)
    (tmp_path / "a.tar").write_bytes(b"x")
    done = cli.run("image", "import", tmp_path / "a.tar")
    assert (done.returncode, done.stdout) == (0, f"{ID}\n{OTHER}\n")
    printed = json.loads(cli.run("image", "import", tmp_path / "a.tar", "--json").stdout)
    assert [each["id"] for each in printed["images"]] == [ID, OTHER]


def tree(top):
    """A directory with a file of every type."""
    (top / "etc").mkdir(parents=True)
    (top / "etc" / "passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    (top / "etc" / "passwd").chmod(0o640)
    (top / "bin").mkdir(mode=0o755)
    (top / "bin" / "tool").write_bytes(os.urandom(300000))
    (top / "bin" / "tool").chmod(0o4755)
    os.link(top / "bin" / "tool", top / "bin" / "same")
    (top / "bin" / "sh").symlink_to("/nowhere/else")
    (top / "empty").mkdir()
    (top / ("long" * 40)).mkdir()
    (top / ("long" * 40) / "ä").write_text("ä")
    with (top / "sparse").open("wb") as hole:
        hole.truncate(1 << 20)
        hole.seek(512 << 10)
        hole.write(b"middle")
    os.mkfifo(top / "fifo")
    subprocess.run(
        ["python3", "-c", f"import socket; socket.socket(1).bind({str(top / 's')!r})"], check=True
    )
    os.utime(top / "etc" / "passwd", (1, 1234567890.5))


@pytest.mark.parametrize("spelling", ["{}", "{}//", ".", "./", "../box/", "../link"])
def test_import_of_a_directory_is_a_tar_of_what_is_in_it(cli, fake, tmp_path, spelling):
    got, top = importing(fake), tmp_path / "box"
    tree(top)
    (tmp_path / "link").symlink_to("box")
    done = cli.run("image", "import", spelling.format(top), cwd=top)
    assert (done.returncode, done.stdout) == (0, f"{ID}\n"), done.stderr
    with tarfile.open(fileobj=io.BytesIO(got[0][1])) as tar:
        entries = {each.name: each for each in tar.getmembers()}
        assert set(entries) == {
            ".", "etc", "etc/passwd", "bin", "bin/tool", "bin/same", "bin/sh", "empty",
            "long" * 40, "long" * 40 + "/ä", "sparse", "fifo",
        }  # fmt: skip
        passwd = entries["etc/passwd"]
        assert (passwd.mode, passwd.mtime, passwd.uid) == (0o640, 1234567890, os.getuid())
        assert {entries["bin/tool"].mode, entries["bin/same"].mode} == {0o4755}
        assert [entries[n].islnk() for n in ("bin/tool", "bin/same")].count(True) == 1
        assert tar.extractfile("bin/tool").read() == (top / "bin" / "tool").read_bytes()
        assert tar.extractfile("sparse").read() == (top / "sparse").read_bytes()
        assert entries["bin/sh"].linkname == "/nowhere/else"
        assert entries["fifo"].isfifo()


def test_import_of_what_cannot_be_read_says_which(cli, fake, tmp_path):
    importing(fake)
    done = cli.run("image", "import", tmp_path / "none.tar")
    assert done.returncode == 1 and f"open '{tmp_path / 'none.tar'}'" in done.stderr
    assert not fake.requests


def test_import_does_not_read_a_terminal(cli, fake):
    importing(fake)
    ours, theirs = os.openpty()
    done = subprocess.run(
        [cli.program, "image", "import", "-"],
        stdin=theirs,
        capture_output=True,
        text=True,
        env=cli.env(),
        timeout=TIMEOUT_S,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 1 and "is a terminal" in done.stderr
    assert not fake.requests


def test_import_that_the_daemon_refuses_in_the_middle_stops(cli, fake):
    """The input is a stream without an end."""

    def method(requests, _context):
        next(requests)
        raise Refusal(CODES.INVALID_ARGUMENT, "that is no archive")

    fake.streaming["ImportImage"] = method
    process = cli.start("image", "import", "/dev/zero")
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1
    assert err.splitlines()[-1] == "agentix: that is no archive"


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("source", ["/dev/zero", "-"])
def test_import_that_is_interrupted_cancels_the_call(cli, fake, signo, source):
    """While it sends, and while it waits for input."""
    began, gone = threading.Event(), threading.Event()

    def method(requests, context):
        context.add_callback(gone.set)
        next(requests)
        began.set()
        gone.wait(TIMEOUT_S)
        raise Refusal(CODES.CANCELLED, "gone")

    fake.streaming["ImportImage"] = method
    process = cli.start("image", "import", source, stdin=subprocess.PIPE)
    process.stdin.write("the beginning")
    process.stdin.flush()
    assert began.wait(TIMEOUT_S)
    process.send_signal(signo)
    assert process.wait(TIMEOUT_S) == 128 + signo
    assert "interrupted" in process.stderr.read()
    assert gone.wait(TIMEOUT_S)
    process.stdin.close()


def test_import_loses_its_daemon(cli, fake):
    began = threading.Event()

    def method(requests, _context):
        next(requests)
        began.set()
        for _ in requests:
            pass

    fake.streaming["ImportImage"] = method
    process = cli.start("image", "import", "/dev/zero")
    assert began.wait(TIMEOUT_S)
    fake.stop()
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1 and "agentix daemon status" in err
