"""agentix sandbox against a scripted daemon."""

import json
import os
import re
import shutil
import socket
import tempfile
import threading
import time
from pathlib import Path

import grpc
import pytest
from agxtest.cli import TIMEOUT_S, interrupt
from agxtest.fake_daemon import FakeDaemon, Refusal, until_over
from agxtest.server import wait_for
from cli_fixtures import fixture_cli, fixture_fake  # noqa: F401

PENDING, READY, FAILED, STOPPED, DELETING, DELETED = range(1, 7)
NOT_FOUND = grpc.StatusCode.NOT_FOUND
MANUAL = (Path(__file__).parents[2] / "docs" / "man" / "agentix.1").read_text()


def handle(fake, name="box-1", state=READY, **fields):
    return fake.messages.SandboxHandle(sandbox_id=name, state=state, **fields)


def answer_create(fake, **fields):
    response = fake.messages.CreateSandboxResponse(sandbox=handle(fake, state=PENDING, **fields))
    fake.methods["CreateSandbox"] = lambda request, context: response


def answer_wait(fake, state=READY, timed_out=False, **fields):
    response = fake.messages.WaitSandboxResponse(
        sandbox=handle(fake, state=state, **fields), timed_out=timed_out
    )
    fake.methods["WaitSandbox"] = lambda request, context: response


def accept(fake, name):
    fake.methods[name] = lambda request, context: fake.messages.AcceptedResponse(accepted=True)


def refuse_unknown(fake, name):
    def method(request, _context):
        text = f"sandbox {request.sandbox_id} not found"
        raise Refusal(NOT_FOUND, text, "SANDBOX_NOT_FOUND", sandbox_id=request.sandbox_id)

    fake.methods[name] = method


def test_create_prints_the_id_and_waits_until_it_is_ready(cli, fake):
    answer_create(fake)
    answer_wait(fake)
    done = cli.run("sandbox", "create", "--image", "debian:12")
    assert (done.returncode, done.stdout) == (0, "box-1\n")
    lines = done.stderr.splitlines()
    assert lines[0] == "Waiting for sandbox box-1 to be ready..."
    assert re.fullmatch(r"Sandbox ready in \d+\.\ds\.", lines[1]) and len(lines) == 2


def test_create_sends_what_its_options_say(cli, fake, tmp_path):
    answer_create(fake)
    (tmp_path / "box.yaml").write_text("image: from-file\n")
    done = cli.run(
        *("sandbox", "create", "--yaml-file", tmp_path / "box.yaml", "--no-wait"),
        *("--label", "a=b", "--label=c=d", "--env", "K=V", "--idle-ttl", "1m30s"),
        *("--mount", "src:/src:writable", "--copy", "/h:/c", "--port", "8080:80/udp"),
        *("--network", "none", "--cpu-limit", "2", "--memory-limit", "1g", "--disk-limit", "2g"),
        *("--gpus", "all", "--builtin-tool", "git", "--sandbox-id", "mine", "--", "sleep", "-x"),
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "box-1\n", "")
    [(_, request)] = fake.requests
    spec = request.create_spec
    assert request.sandbox_id == "mine" and request.config_yaml == b"image: from-file\n"
    assert spec.image == "" and dict(spec.labels) == {"a": "b", "c": "d"}
    assert dict(spec.envs) == {"K": "V"} and spec.idle_ttl.seconds == 90
    assert (spec.mounts[0].source, spec.mounts[0].target) == (f"{tmp_path}/src", "/src")
    assert spec.mounts[0].writable and spec.copies[0].source == "/h"
    assert (spec.ports[0].host_port, spec.ports[0].container_port, spec.ports[0].protocol) == (
        8080,
        80,
        1,
    )
    assert spec.network == 1 and spec.cpu_limit == "2" and spec.memory_limit == "1g"
    assert spec.disk_limit == "2g" and spec.gpus == "all" and list(spec.builtin_tools) == ["git"]
    assert list(spec.command) == ["sleep", "-x"]


def test_create_with_json_prints_the_answer_and_does_not_wait(cli, fake):
    answer_create(fake)
    done = cli.run("sandbox", "create", "--image", "i", "--json")
    assert done.returncode == 0 and done.stderr == ""
    answer = json.loads(done.stdout)["sandbox"]
    assert answer["sandbox_id"] == "box-1" and answer["state"] == "SANDBOX_STATE_PENDING"
    assert answer["last_event_sequence"] == "0" and answer["created_at"] is None


def test_create_tells_the_warnings_once(cli, fake):
    warnings = ["uv can write to ~/.cache/uv", "no guard\n\x1b[2J here"]
    answer_create(fake, warnings=warnings)
    answer_wait(fake, warnings=warnings)
    done = cli.run("sandbox", "create", "--image", "debian:12")
    assert (done.returncode, done.stdout) == (0, "box-1\n")
    lines = done.stderr.splitlines()
    assert lines[:2] == [
        "Warning: uv can write to ~/.cache/uv",
        "Warning: no guard\\u{a}\\u{1b}[2J here",
    ]
    assert lines[2].startswith("Waiting for sandbox") and done.stderr.count("Warning") == 2
    done = cli.run("sandbox", "create", "--image", "debian:12", "--json")
    assert json.loads(done.stdout)["sandbox"]["warnings"] == warnings and done.stderr == ""


def test_create_of_one_that_fails_says_why(cli, fake):
    answer_create(fake)
    answer_wait(fake, FAILED, error_code="SANDBOX_CREATE_FAILED", error_message="no such image")
    done = cli.run("sandbox", "create", "--image", "i")
    assert (done.returncode, done.stdout) == (1, "box-1\n")
    assert "agentix: sandbox 'box-1' failed: no such image (SANDBOX_CREATE_FAILED)" in done.stderr


def test_create_with_a_timeout_says_what_is_the_matter(cli, fake):
    answer_create(fake)
    answer_wait(fake, PENDING, timed_out=True)
    done = cli.run("sandbox", "create", "--image", "i", "--timeout", "10ms")
    assert done.returncode == 1
    assert "after 10ms sandbox 'box-1' is still Pending; `agentix sandbox wait`" in done.stderr


def until_drawn(screen, words, start=0):
    """Waits until a piece of the screen from `start` on contains the text."""
    wait_for(lambda: words.encode() in b"".join(screen[start:]), f"{words} is drawn")


def test_create_on_a_terminal_shows_that_time_passes(cli, fake):
    screen = []
    answer_create(fake)

    def wait(_request, _context):
        until_drawn(screen, "/ Waiting")
        return fake.messages.WaitSandboxResponse(sandbox=handle(fake))

    fake.methods["WaitSandbox"] = wait
    words = ("sandbox", "create", "--image", "i")
    status, stdout, text = cli.run_on_terminal(*words, screen=screen)
    assert (status, stdout) == (0, "box-1\n")
    printed = text.split("\r\x1b[K")
    assert len(printed) >= 4 and printed[1].startswith(
        "| Waiting for sandbox box-1 to be ready... "
    )
    assert printed[2].startswith("/ ") and re.match(r"Sandbox ready in \d+\.\d", printed[-1])
    assert "agentix exec run box-1 -- COMMAND" in printed[-1]


def test_create_on_a_terminal_shows_how_far_a_pull_is(cli, fake):
    told, screen = threading.Event(), []
    answer_create(fake)

    def watch(request, context):
        assert request.from_now and list(request.sandbox_ids) == ["box-1"]
        yield fake.messages.WatchEventsResponse(position=1)
        lines = ("0/2 layers", "1/2 layers, 1.0/2.0 MB", "Waiting for sandbox")
        for done, line in enumerate(lines):
            pull = fake.messages.PullProgress(
                sandbox_id="box-1",
                image="redis:7",
                layers_done=done,
                layers_total=2,
                bytes_done=done * 1000000,
                bytes_total=2000000,
            )
            drawn = len(screen)
            yield fake.messages.WatchEventsResponse(position=1, pull=pull)
            until_drawn(screen, line, drawn)
        told.set()

    def wait(_request, _context):
        told.wait(TIMEOUT_S)
        return fake.messages.WaitSandboxResponse(sandbox=handle(fake))

    fake.methods["WatchEvents"] = watch
    fake.methods["WaitSandbox"] = wait
    words = ("sandbox", "create", "--image", "i")
    status, stdout, text = cli.run_on_terminal(*words, screen=screen)
    assert (status, stdout) == (0, "box-1\n")
    printed = [line[2:] for line in text.split("\r\x1b[K")]
    first, second = (
        next(n for n, line in enumerate(printed) if line.startswith(f"Pulling redis:7: {words}"))
        for words in ("0/2 layers", "1/2 layers, 1.0/2.0 MB")
    )
    assert 1 <= first < second
    assert printed[second + 1 :][-2].startswith("Waiting for sandbox box-1 to be ready...")


def test_list_is_a_table_of_all_pages(cli, fake):
    now = int(time.time())

    def page(request, _context):
        number = int(request.page_token or "0")
        response = fake.messages.full("agentix.v1.ListSandboxesResponse")(
            next_page_token=str(number + 1) if number < 2 else ""
        )
        box = handle(fake, f"box-{number}", labels={"b": "2", "a": "1"})
        box.created_at.seconds, box.state_changed_at.seconds = now - 300, now - 7200
        response.sandboxes.append(box)
        return response

    fake.methods["ListSandboxes"] = page
    done = cli.run("sandbox", "list", "--label", "a=1", "--include-deleted")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "SANDBOX ID  CREATED  STATUS    LABELS   ERROR",
        "box-0       5m ago   Ready 2h  a=1,b=2",
        "box-1       5m ago   Ready 2h  a=1,b=2",
        "box-2       5m ago   Ready 2h  a=1,b=2",
    ]
    assert dict(fake.requests[2][1].label_selector) == {"a": "1"}
    assert fake.requests[2][1].include_deleted
    boxes = json.loads(cli.run("sandbox", "list", "--json").stdout)["sandboxes"]
    assert [box["sandbox_id"] for box in boxes] == ["box-0", "box-1", "box-2"]


def test_table_does_what_no_label_or_message_says(cli, fake):
    box = handle(fake, "box-1", FAILED, labels={"k\x1b]0;x\x07": "\x9b31m\n"}, error_code="E")
    box.error_message = "\u202egnorw\r"
    response = fake.messages.full("agentix.v1.ListSandboxesResponse")(sandboxes=[box])
    fake.methods["ListSandboxes"] = lambda request, context: response
    fake.methods["GetSandbox"] = lambda request, context: fake.messages.GetSandboxResponse(
        sandbox=box
    )
    for words in (["list"], ["get", "box-1"]):
        out = cli.run("sandbox", *words).stdout
        assert not any(char in out for char in "\x1b\x07\x9b\r\u202e")
        assert "\\u{202e}gnorw\\u{d}" in out


def test_large_table_is_printed_whole(cli, fake):
    pages = fake.messages.full("agentix.v1.ListSandboxesResponse")

    def page(request, _context):
        first = int(request.page_token or "0")
        names = [f"box-{i:05}" for i in range(first, first + 1000)]
        boxes = [handle(fake, name, labels={"k": "v" * 100}) for name in names]
        return pages(sandboxes=boxes, next_page_token="" if first == 19000 else str(first + 1000))

    fake.methods["ListSandboxes"] = page
    lines = cli.run("sandbox", "list").stdout.splitlines()
    assert len(lines) == 20001 and lines[-1].startswith("box-19999")


def test_get_prints_lines(cli, fake):
    box = handle(fake, image="debian:12", labels={"a": "b"}, error_code="E", error_message="m")
    box.created_at.seconds = 1
    box.warnings.extend(["no guard", "nor this"])
    fake.methods["GetSandbox"] = lambda request, context: fake.messages.GetSandboxResponse(
        sandbox=box
    )
    done = cli.run("sandbox", "get", "box-1")
    assert done.stdout.splitlines() == [
        "sandbox_id=box-1",
        "state=Ready",
        "image=debian:12",
        "created_at=1970-01-01T00:00:01Z",
        'labels={"a":"b"}',
        "error_code=E",
        "error_message=m",
        "warning=no guard",
        "warning=nor this",
    ]
    assert json.loads(cli.run("sandbox", "get", "box-1", "--json").stdout)["sandbox"]["image"]


def test_get_shows_what_is_used(cli, fake):
    answer = fake.messages.full("agentix.v1.GetSandboxResponse")(sandbox=handle(fake))
    answer.use.memory_bytes = 64_000_000
    answer.use.memory_limit_bytes = 512_000_000
    answer.use.disk_bytes = 0
    answer.companions.add(name="cache\x1b").use.pids = 2
    fake.methods["GetSandbox"] = lambda request, context: answer
    assert cli.run("sandbox", "get", "box-1").stdout.splitlines()[2:] == [
        "memory=64.0 MB of 512.0 MB",
        "disk=0 B",
        "cache\\u{1b}.pids=2",
    ]
    printed = json.loads(cli.run("sandbox", "get", "box-1", "--json").stdout)
    # Unknown values are left out.
    assert printed["use"] == {
        "memory_bytes": "64000000",
        "memory_limit_bytes": "512000000",
        "disk_bytes": "0",
    }
    assert printed["companions"] == [{"name": "cache\x1b", "use": {"pids": "2"}}]


def test_get_says_why_nothing_is_known_of_the_use(cli, fake):
    answer = fake.messages.full("agentix.v1.GetSandboxResponse")(
        sandbox=handle(fake), use_error="the engine is away"
    )
    fake.methods["GetSandbox"] = lambda request, context: answer
    done = cli.run("sandbox", "get", "box-1")
    assert done.returncode == 0
    assert done.stdout.splitlines()[2:] == ["use_error=the engine is away"]
    printed = json.loads(cli.run("sandbox", "get", "box-1", "--json").stdout)
    assert printed["use"] is None and printed["use_error"] == "the engine is away"


@pytest.mark.parametrize(
    ("word", "method", "state", "waiting", "end"),
    [
        ("stop", "StopSandbox", STOPPED, "to stop...", "Sandbox stopped in "),
        ("resume", "ResumeSandbox", READY, "to be ready...", "Sandbox ready in "),
        ("delete", "DeleteSandbox", DELETED, "to be deleted...", "Sandbox deleted in "),
    ],
)
def test_changes_are_waited_for(cli, fake, word, method, state, waiting, end):
    accept(fake, method)
    answer_wait(fake, state)
    done = cli.run("sandbox", word, "box-1")
    assert (done.returncode, done.stdout) == (0, "")
    first, second = done.stderr.splitlines()
    assert first == f"Waiting for sandbox box-1 {waiting}" and second.startswith(end)
    answer_wait(fake, FAILED, error_message="it broke", error_code="X")
    done = cli.run("sandbox", word, "box-1")
    assert done.returncode == 1 and "agentix: sandbox 'box-1' failed: it broke (X)" in done.stderr
    done = cli.run("sandbox", word, "box-1", "--no-wait")
    assert (done.returncode, done.stderr) == (0, "")


def test_delete_of_one_that_is_forgotten_meanwhile_is_done(cli, fake):
    accept(fake, "DeleteSandbox")
    refuse_unknown(fake, "WaitSandbox")
    assert cli.run("sandbox", "delete", "box-1").returncode == 0


def test_delete_by_label_says_how_many(cli, fake):
    ids = []

    def delete(_request, _context):
        return fake.messages.DeleteSandboxesResponse(
            deleted_sandbox_ids=ids, deleted_count=len(ids)
        )

    fake.methods["DeleteSandboxes"] = delete
    answer_wait(fake, DELETED)
    done = cli.run("sandbox", "delete", "--label", "a=b")
    assert (done.returncode, done.stderr) == (0, "No sandboxes matched the label selector.\n")
    ids += ["box-1", "box-2"]
    done = cli.run("sandbox", "delete", "--label", "a=b")
    assert done.returncode == 0
    assert re.search(r"^Deleted 2 sandboxes in \d+\.\ds\.$", done.stderr, re.MULTILINE)
    assert [name for name, _ in fake.requests].count("WaitSandbox") == 2
    assert cli.run("sandbox", "delete").returncode == 2
    assert cli.run("sandbox", "delete", "box-1", "--label", "a=b").returncode == 2


def test_wait_prints_the_state_and_fails_where_it_cannot_be_reached(cli, fake):
    answer_wait(fake, STOPPED)
    done = cli.run("sandbox", "wait", "box-1")
    assert (done.returncode, done.stdout) == (0, "Stopped\n")
    done = cli.run("sandbox", "wait", "box-1", "--state", "stopped", "--timeout", "1h")
    assert (done.returncode, done.stdout) == (0, "Stopped\n")
    request = fake.requests[-1][1]
    assert set(request.states) == {FAILED, STOPPED, DELETING, DELETED}
    assert 3000 <= request.timeout.seconds <= 3600
    answer_wait(fake, DELETED)
    done = cli.run("sandbox", "wait", "box-1", "--state", "ready")
    assert (done.returncode, done.stdout) == (1, "Deleted\n")
    assert cli.run("sandbox", "wait", "box-1", "--state", "asleep").returncode == 2


def make_event(fake, sequence, kind="SANDBOX_READY", **fields):
    types = fake.messages.pool.FindEnumTypeByName("agbox.v1.EventType").values_by_name
    event = fake.messages.SandboxEvent(
        sandbox_id="box-1", sequence=sequence, event_type=types[kind].number, **fields
    )
    event.occurred_at.seconds = 1
    return event


def test_events_end_at_the_newest_or_go_on(cli, fake):
    fake.methods["GetSandbox"] = lambda request, context: fake.messages.GetSandboxResponse(
        sandbox=handle(fake, last_event_sequence=3)
    )

    def subscribe(request, context):
        for sequence in range(request.from_sequence + 1, 4):
            yield make_event(fake, sequence)
        details = fake.messages.ExecEventDetails(exec_id="ex-1", exit_code=7, exec_state=3)
        details.error_code, details.error_message = "EXEC_RUN_FAILED", "\x1b[1m"
        yield make_event(fake, 4, "EXEC_FAILED", exec=details)
        until_over(context)

    fake.methods["SubscribeSandboxEvents"] = subscribe
    done = cli.run("sandbox", "events", "box-1")
    assert done.stdout.splitlines() == [
        f"1970-01-01T00:00:01Z  box-1  {i}  SANDBOX_READY" for i in (1, 2, 3)
    ]
    assert cli.run("sandbox", "events", "box-1", "--after", "3").stdout == ""
    follower = cli.start("sandbox", "events", "box-1", "-f", "--after", "2", "--json")
    assert [json.loads(follower.stdout.readline())["sequence"] for _ in range(2)] == ["3", "4"]
    follower.terminate()
    follower.communicate()
    follower = cli.start("sandbox", "events", "box-1", "-f", "--after", "3")
    assert follower.stdout.readline() == (
        "1970-01-01T00:00:01Z  box-1  4  EXEC_FAILED  ex-1  exit code 7  EXEC_RUN_FAILED: "
        "\\u{1b}[1m\n"
    )
    follower.terminate()
    follower.communicate()


def test_events_of_all_go_on_where_they_were_when_the_daemon_comes_back(cli, fake):
    def watch(request, context):
        after = request.after_position
        yield fake.messages.WatchEventsResponse(position=after or 10)
        yield fake.messages.WatchEventsResponse(
            position=(after or 10) + 1, event=make_event(fake, (after or 10) + 1)
        )
        until_over(context)

    fake.methods["WatchEvents"] = watch
    follower = cli.start("sandbox", "events", "--label", "a=b")
    assert "  11  SANDBOX_READY" in follower.stdout.readline()
    fake.stop()
    assert (
        "lost the connection to the daemon; waiting for it to return" in follower.stderr.readline()
    )
    fake.start()
    assert "  12  SANDBOX_READY" in follower.stdout.readline()
    assert interrupt(follower)[0] == -2
    requests = [request for name, request in fake.requests if name == "WatchEvents"]
    assert requests[0].from_now and dict(requests[0].label_selector) == {"a": "b"}
    assert (requests[1].after_position, requests[1].from_now) == (11, False)


def test_events_of_all_tell_how_far_a_pull_is(cli, fake):
    def watch(_request, context):
        pull = fake.messages.PullProgress(
            sandbox_id="box-1",
            image="debian:12",
            layers_done=1,
            layers_total=3,
            bytes_done=1_500_000,
            bytes_total=4_000_000,
        )
        yield fake.messages.WatchEventsResponse(position=10)
        yield fake.messages.WatchEventsResponse(position=10, pull=pull)
        yield fake.messages.WatchEventsResponse(position=11, event=make_event(fake, 11))
        until_over(context)

    fake.methods["WatchEvents"] = watch
    follower = cli.start("sandbox", "events")
    line = follower.stdout.readline()
    assert "  box-1  -  " in line and "debian:12: 1/3 layers, 1.5/4.0 MB" in line
    assert "  11  SANDBOX_READY" in follower.stdout.readline()
    assert interrupt(follower)[0] == -2
    follower = cli.start("sandbox", "events", "--json")
    assert json.loads(follower.stdout.readline())["pull"]["image"] == "debian:12"
    assert interrupt(follower)[0] == -2


def test_wait_goes_on_when_the_daemon_comes_back(cli, fake):
    began = threading.Event()

    def stuck(_request, context):
        began.set()
        until_over(context)

    fake.methods["WaitSandbox"] = stuck
    process = cli.start("sandbox", "wait", "box-1")
    assert began.wait(TIMEOUT_S)
    assert process.stderr.readline() == "Waiting for sandbox box-1...\n"
    fake.stop()
    assert "lost the connection to the daemon" in process.stderr.readline()
    answer_wait(fake, READY)
    fake.start()
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, out, err) == (0, "Ready\n", "")


@pytest.mark.parametrize("word", ["get", "stop", "resume", "delete", "wait", "events"])
def test_unknown_id_says_where_to_look(cli, fake, word):
    for name in ("GetSandbox", "StopSandbox", "ResumeSandbox", "DeleteSandbox", "WaitSandbox"):
        refuse_unknown(fake, name)
    done = cli.run("sandbox", word, "none")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == (
        "agentix: sandbox none not found; `agentix sandbox list` shows the existing ones"
    )


def test_hostile_answers_are_errors(cli, fake):
    for answer in (b"\xff\xff\xff", b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x03\x0a\x01\xff"):
        fake.methods["GetSandbox"] = lambda request, context, answer=answer: answer
        done = cli.run("sandbox", "get", "box-1")
        assert (done.returncode, done.stdout) == (1, "") and done.stderr.startswith("agentix: ")
    answer_create(fake)
    bad = fake.messages.CreateSandboxResponse(sandbox=handle(fake, "x\x1b[2J"))
    fake.methods["CreateSandbox"] = lambda request, context: bad
    done = cli.run("sandbox", "create", "--image", "i")
    assert (done.returncode, done.stdout) == (1, "") and "\x1b" not in done.stderr


def test_message_of_the_daemon_is_displayed_without_what_a_terminal_obeys(cli, fake):
    def method(_request, _context):
        raise Refusal(grpc.StatusCode.INTERNAL, "bad \x1b[31mthing\nsecond line")

    fake.methods["GetSandbox"] = method
    done = cli.run("sandbox", "get", "box-1")
    assert done.returncode == 1
    assert done.stderr == "agentix: bad \\u{1b}[31mthing\\u{a}second line\n"


def test_daemon_of_another_version_is_named(cli, fake):
    done = cli.run("sandbox", "wait", "box-1")
    assert done.returncode == 1 and "the daemon has another version" in done.stderr


def test_without_a_daemon_it_says_what_to_do(cli):
    done = cli.run("sandbox", "list")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert f"nobody listens at '{cli.socket}'" in done.stderr
    assert "`agentix daemon start`" in done.stderr


# HTTP/2 of a server that accepts no more calls: SETTINGS, and GOAWAY without a last stream.
GOING_AWAY = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]) + bytes([0, 0, 8, 7]) + bytes(13)


def test_call_that_an_ending_daemon_did_not_take_is_the_next_one_s(cli):
    fake = FakeDaemon(cli.socket)
    fake.methods["GetSandbox"] = lambda request, context: fake.messages.GetSandboxResponse(
        sandbox=handle(fake)
    )
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(cli.socket))
        old.listen()
        process = cli.start("sandbox", "get", "box-1")
        connection = old.accept()[0]
        fake.start()
        connection.sendall(GOING_AWAY)
        connection.close()
    out, err = process.communicate(timeout=TIMEOUT_S)
    fake.stop()
    assert (process.returncode, err) == (0, "")
    assert out.startswith("sandbox_id=box-1\n")


def test_socket_of_another_user_is_named(cli):
    if os.getuid() != 0:
        cli.socket.parent.chmod(0)
    nobody = {"user": 65534, "group": 65534} if os.getuid() == 0 else {}
    with tempfile.TemporaryDirectory() as folder:
        # The build may be in a directory that others may not read.
        os.chmod(folder, 0o755)
        cli.program = shutil.copy(cli.program, folder)
        process = cli.start("sandbox", "list", cwd="/", **nobody)
        _, err = process.communicate(timeout=TIMEOUT_S)
    cli.socket.parent.chmod(0o700)
    assert process.returncode == 1 and "belongs to another user" in err


def test_places_that_are_none(cli):
    for value, says in (
        ("relative", "not an absolute path"),
        ("/" + "x" * 200, "too long for a socket"),
    ):
        done = cli.run("sandbox", "list", env=cli.env(AGENTIX_SOCKET=value))
        assert done.returncode == 1 and says in done.stderr


def test_full_output_is_a_failure(cli, fake):
    fake.methods["GetSandbox"] = lambda request, context: fake.messages.GetSandboxResponse(
        sandbox=handle(fake)
    )
    with open("/dev/full", "w", encoding="ascii") as full:
        process = cli.start("sandbox", "get", "box-1", stdout=full)
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1 and "standard output" in err


def test_mistakes_are_usage_errors(cli):
    for words in (
        ["sandbox"],
        ["sandbox", "nothing"],
        ["sandbox", "get"],
        ["sandbox", "get", "a", "b"],
        ["sandbox", "get", "a", "--", "b"],
        ["sandbox", "list", "--label", "x"],
        ["sandbox", "create"],
        ["sandbox", "stop", "a", "--timeout", "soon"],
        ["sandbox", "events", "a", "--label", "a=b"],
        ["exec", "run", "a"],
        ["exec", "run", "a", "ls"],
        ["exec", "run", "--", "ls"],
        ["exec", "run", "a", "-i", "--detach", "--", "ls"],
        ["daemon", "backup"],
        ["version", "x"],
    ):
        done = cli.run(*words)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert "agentix" in done.stderr and done.stderr.count("\n") >= 2, words


def test_every_command_has_help(cli):
    groups = {
        "sandbox": "create list get stop resume delete wait events",
        "exec": "run logs get cancel list",
        "daemon": "start stop status logs backup",
    }
    for group, names in groups.items():
        done = cli.run("help", group)
        assert done.returncode == 0 and f"usage: agentix {group} " in done.stdout
        for name in names.split():
            assert f"  {name} " in done.stdout
            asked = cli.run(group, name, "--help")
            assert asked.returncode == 0 and f"usage: agentix {group} {name}" in asked.stdout
            assert cli.run("help", group, name).stdout == asked.stdout
            assert max(map(len, asked.stdout.splitlines())) <= 100
            for option in re.findall(r"--([a-z-]+)", asked.stdout):
                assert f"Fl -{option}" in MANUAL, option
