"""agentix exec against a scripted daemon."""

import contextlib
import fcntl
import json
import math
import os
import queue
import signal
import struct
import subprocess
import termios
import threading
import time

import grpc
import pytest
from agxtest.cli import interrupt
from agxtest.fake_daemon import Refusal
from agxtest.server import held_up, wait_for
from cli_fixtures import fixture_cli, fixture_fake  # noqa: F401

RUNNING, FINISHED, FAILED, CANCELLED = range(1, 5)
STDOUT, STDERR = 1, 2
TIMEOUT_S = 60


class Command:
    """A command of the fake daemon. The test supplies its output and decides when it ends."""

    def __init__(self, fake):
        self.fake, self.written = fake, {STDOUT: b"", STDERR: b""}
        self.changed = threading.Condition()
        self.status = fake.messages.ExecStatus(exec_id="exec-1", sandbox_id="box-1", state=RUNNING)
        self.created, self.input, self.eof = queue.Queue(), b"", False
        self.cancelled = threading.Event()
        self.skip = 0
        fake.methods |= {
            "CreateExec": self.create,
            "ReadExecOutput": self.read,
            "WaitExec": self.wait,
            "CancelExec": self.cancel,
            "WriteExecInput": self.write_input,
            "GetExec": lambda request, context: fake.messages.GetExecResponse(exec=self.status),
        }

    def create(self, request, _context):
        self.created.put(request)
        return self.fake.messages.CreateExecResponse(exec_id="exec-1")

    def write(self, data, stream=STDOUT):
        with self.changed:
            self.written[stream] += data
            self.changed.notify_all()

    def end(self, state=FINISHED, **fields):
        with self.changed:
            self.status.state = state
            for name, value in fields.items():
                setattr(self.status, name, value)
            self.changed.notify_all()

    def over(self):
        return self.status.state != RUNNING

    def asked(self, method):
        """The number of requests."""
        return sum(name == method for name, _ in self.fake.requests)

    def read(self, request, context):
        at = request.offset
        while context.is_active():
            with self.changed:
                data = self.written[request.stream][at : at + 50000]
                if not data and (self.over() or not request.follow):
                    return
                if not data:
                    self.changed.wait(0.1)
            if data:
                skipped, self.skip = self.skip, 0
                yield self.fake.messages.ReadExecOutputResponse(
                    offset=at, data=data, skipped=skipped
                )
                at += len(data)

    def wait(self, _request, context):
        with self.changed:
            while not self.over() and context.is_active():
                self.changed.wait(0.1)
            return self.fake.messages.WaitExecResponse(exec=self.status)

    def cancel(self, _request, _context):
        if self.over():
            code = grpc.StatusCode.FAILED_PRECONDITION
            raise Refusal(code, "exec is terminal", "EXEC_ALREADY_TERMINAL", exec_id="exec-1")
        self.cancelled.set()
        return self.fake.messages.AcceptedResponse(accepted=True)

    def write_input(self, requests, _context):
        if self.over():
            raise Refusal(grpc.StatusCode.FAILED_PRECONDITION, "the command has ended")
        for request in requests:
            self.input += request.data
            self.eof = self.eof or request.eof
        size = sum(len(request.data) for request in requests)
        return self.fake.messages.WriteExecInputResponse(bytes_written=size)


@pytest.fixture(name="command")
def fixture_command(fake):
    command = Command(fake)
    yield command
    command.end()


RUN = ("exec", "run", "box-1", "--", "program")


def test_run_prints_both_streams_as_they_come_and_ends_with_the_exit_code(cli, command):
    process = cli.start(*RUN)
    command.write(b"first\n")
    assert process.stdout.readline() == "first\n"
    command.write(b"complaint\n", STDERR)
    assert process.stderr.readline() == "complaint\n"
    command.write(b"last\n")
    command.end(FAILED, exit_code=7, error="exec failed", error_code="EXEC_RUN_FAILED")
    assert process.communicate(timeout=TIMEOUT_S) == ("last\n", "")
    assert process.returncode == 7


def test_run_sends_what_its_options_say(cli, command):
    command.end()
    done = cli.run(
        *("exec", "run", "--cwd", "/w", "box-1", "--env-overrides", "A=1", "--env-overrides=B=2"),
        *("--deadline", "90s", "--exec-id", "mine", "--", "sh", "-c", "--", "x y"),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    request = command.created.get_nowait()
    assert (request.sandbox_id, request.cwd, request.exec_id) == ("box-1", "/w", "mine")
    assert dict(request.env_overrides) == {"A": "1", "B": "2"} and request.deadline.seconds == 90
    assert list(request.command) == ["sh", "-c", "--", "x y"] and not request.stdin


def test_run_passes_all_bytes_on(cli, command):
    data = bytes(range(256)) * 40000
    command.write(data)
    command.write(data[::-1], STDERR)
    command.end()
    done = cli.run(*RUN, text=False)
    assert (done.returncode, done.stdout == data, done.stderr == data[::-1]) == (0, True, True)


@pytest.mark.parametrize(
    ("state", "fields", "status", "says"),
    [
        (
            FAILED,
            {"exit_code": 0, "error": "no such user", "error_code": "E"},
            125,
            "no such user (E)",
        ),
        (FAILED, {"exit_code": -1, "error": "lost", "error_code": "E"}, 125, "lost (E)"),
        (
            FAILED,
            {"exit_code": 137, "error": "too long", "error_code": "EXEC_DEADLINE_EXCEEDED"},
            137,
            "too long (EXEC_DEADLINE_EXCEEDED)",
        ),
        (CANCELLED, {}, 125, "the command was cancelled"),
    ],
)
def test_run_of_a_command_without_an_end_of_its_own(cli, command, state, fields, status, says):
    command.end(state, **fields)
    done = cli.run(*RUN)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", f"agentix: {says}\n")


@pytest.mark.parametrize(("signo", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_run_cancels_the_command_and_prints_its_last_words(cli, command, signo, status):
    process = cli.start(*RUN)
    command.write(b"here\n")
    assert process.stdout.readline() == "here\n"
    process.send_signal(signo)
    assert command.cancelled.wait(TIMEOUT_S)
    command.write(b"goodbye\n")
    command.end(CANCELLED)
    assert process.communicate(timeout=TIMEOUT_S) == ("goodbye\n", "")
    assert process.returncode == status


def test_interrupted_run_does_not_wait_for_long(cli, command):
    process = cli.start(*RUN)
    command.write(b"here\n")
    process.stdout.readline()
    began = time.monotonic()
    assert interrupt(process)[0] == 130
    assert 2.5 < time.monotonic() - began < TIMEOUT_S
    process = cli.start(*RUN)
    command.write(b"here\n")
    process.stdout.readline()
    with held_up(process.pid):  # it finds both, the first one first
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 143  # the first alone would end in 130


def test_run_interrupted_when_the_command_has_ended_gives_its_exit_code(cli, command):
    """The daemon knows the end, but its message has not arrived yet."""
    late = threading.Event()
    wait = command.wait

    def slow(request, context):
        late.wait(TIMEOUT_S)
        return wait(request, context)

    command.fake.methods["WaitExec"] = slow
    process = cli.start(*RUN)
    command.write(b"here\n")
    process.stdout.readline()
    command.end(FAILED, exit_code=3, error_code="EXEC_RUN_FAILED", error="x")
    process.send_signal(signal.SIGINT)
    wait_for(lambda: command.asked("CancelExec"), "the daemon is asked to cancel it")
    late.set()
    assert process.wait(TIMEOUT_S) == 3
    process.communicate()


def unread(pipe):
    """The number of bytes that wait in the pipe."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, struct.pack("i", 0)))[0]


def test_run_interrupted_while_nobody_reads_its_output_ends(cli, command):
    process = cli.start(*RUN)
    command.write(b"x" * 10_000_000)
    size = fcntl.fcntl(process.stdout, fcntl.F_GETPIPE_SZ)
    wait_for(lambda: unread(process.stdout) > size // 2, "the pipe fills up")
    process.send_signal(signal.SIGINT)
    assert command.cancelled.wait(TIMEOUT_S)
    assert process.wait(TIMEOUT_S) == 130
    process.communicate()


def test_run_interrupted_before_the_daemon_answers_ends(cli, command):
    began, go_on = threading.Event(), threading.Event()

    def stuck(_request, _context):
        began.set()
        go_on.wait(TIMEOUT_S)

    command.fake.methods["CreateExec"] = stuck
    process = cli.start(*RUN)
    assert began.wait(TIMEOUT_S)
    status, _, err = interrupt(process)
    go_on.set()
    assert status == 130 and "interrupted before the daemon answered" in err


def test_run_whose_output_is_closed_cancels_the_command(cli, command):
    process = cli.start(*RUN)
    command.write(b"x\n")
    process.stdout.readline()
    process.stdout.close()
    command.write(b"x" * 100_000)
    assert command.cancelled.wait(TIMEOUT_S)
    err = process.stderr.read()
    assert process.wait(TIMEOUT_S) == 1
    assert "cancelled, because its output cannot be written" in err
    process.stderr.close()


def test_run_forwards_its_standard_input_to_the_end(cli, command):
    data = bytes(range(256)) * 1000
    process = cli.start(*RUN[:2], "-i", *RUN[2:], stdin=subprocess.PIPE, text=False)
    process.stdin.write(data)
    process.stdin.close()
    process.stdin = None
    while not command.eof:
        time.sleep(0.01)
    assert command.created.get_nowait().stdin and command.input == data
    command.end()
    assert process.communicate(timeout=TIMEOUT_S) == (b"", b"")
    assert process.returncode == 0


def test_run_gathers_input_while_a_piece_is_on_its_way(cli, fake, command):
    data, given = os.urandom(4 << 20), 0

    def taken():
        """The number of bytes that it has read; infinite if it has read them all, or will soon."""
        with contextlib.suppress(TypeError, ValueError):  # the pipe is closed: all was given
            return given - unread(process.stdin)
        return math.inf

    def slow(requests, context):
        """Each piece stays in flight until so many more bytes were read; a pipe holds 64 KiB."""
        came = len(command.input) + sum(len(request.data) for request in requests)
        wait_for(lambda: taken() - came >= 256 << 10, "it reads on")
        return command.write_input(requests, context)

    fake.methods["WriteExecInput"] = slow
    process = cli.start(*RUN[:2], "-i", *RUN[2:], stdin=subprocess.PIPE, text=False, bufsize=0)
    while given < len(data):
        given += process.stdin.write(data[given : given + 4096])
    process.stdin.close()
    process.stdin = None
    while not command.eof:
        time.sleep(0.01)
    assert command.input == data
    # Without that it would be 64 at the least.
    assert command.asked("WriteExecInput") < 32
    command.end()
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0


def test_run_with_input_that_the_command_does_not_want_ends_well(cli, command):
    process = cli.start(*RUN[:2], "--stdin", *RUN[2:], stdin=subprocess.PIPE, text=False)
    command.write(b"enough\n")
    process.stdout.readline()
    command.end()
    assert process.wait(TIMEOUT_S) == 0
    process.communicate()


def test_run_without_stdin_leaves_ours_alone(cli, command):
    process = cli.start(*RUN, stdin=subprocess.PIPE, text=False)
    command.write(b"x\n")
    process.stdout.readline()
    process.stdin.write(b"unread\n")
    process.stdin.flush()
    time.sleep(0.2)
    command.end()
    process.communicate(timeout=TIMEOUT_S)
    assert command.input == b""


def test_run_goes_on_where_it_was_when_the_daemon_comes_back(cli, fake, command):
    process = cli.start(*RUN)
    command.write(b"one\n")
    assert process.stdout.readline() == "one\n"
    fake.stop()
    command.write(b"two\n")
    went = process.stderr.readline()
    assert went == "agentix: lost the connection to the daemon; waiting for it to return\n"
    fake.start()
    assert process.stdout.readline() == "two\n"
    command.write(b"three\n")
    command.end(FAILED, exit_code=4, error_code="EXEC_RUN_FAILED", error="x")
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert (out, process.returncode, err) == ("three\n", 4, "")


@pytest.mark.deadline(60)
def test_run_gives_up_when_the_daemon_stays_away(cli, fake, command):
    process = cli.start(*RUN)
    command.write(b"one\n")
    process.stdout.readline()
    fake.stop()
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1 and "`agentix daemon status`" in err.splitlines()[-1]


def test_run_in_a_sandbox_that_is_not_ready_says_what_to_do(cli, command):
    def refuse(_request, _context):
        code = grpc.StatusCode.FAILED_PRECONDITION
        raise Refusal(code, "sandbox box-1 is not ready", "SANDBOX_NOT_READY", sandbox_id="box-1")

    command.fake.methods["CreateExec"] = refuse
    done = cli.run(*RUN)
    assert (done.returncode, done.stdout) == (1, "")
    assert "sandbox box-1 is not ready; `agentix sandbox get`" in done.stderr


def test_detached_run_prints_the_id(cli, command):
    done = cli.run("exec", "run", "box-1", "--detach", "--", "program")
    assert (done.returncode, done.stdout, done.stderr) == (0, "exec-1\n", "")


def test_output_that_was_not_kept_is_told(cli, command):
    command.skip = 123
    command.write(b"rest\n")
    command.end()
    done = cli.run(*RUN)
    assert done.stdout == "rest\n"
    assert "agentix: 123 bytes of the output were not kept\n" in done.stderr


def test_logs_print_what_there_is_or_go_on(cli, command):
    command.write(b"0123456789")
    command.write(b"complaint", STDERR)
    assert cli.run("exec", "logs", "exec-1").stdout == "0123456789"
    assert cli.run("exec", "logs", "exec-1", "--offset", "4").stdout == "456789"
    assert cli.run("exec", "logs", "exec-1", "--stderr").stdout == "complaint"
    process = cli.start("exec", "logs", "exec-1", "-f")
    command.write(b"ten\n")
    assert process.stdout.readline() == "0123456789ten\n"
    command.end(FAILED, exit_code=3)
    assert process.wait(TIMEOUT_S) == 0
    process.communicate()


def test_get_and_list_and_cancel(cli, fake, command):
    command.status.command.extend(["sh", "-c", "echo \x1b[1m"])
    command.status.cwd = "/w"
    fake.methods["ListActiveExecs"] = lambda request, context: (
        fake.messages.ListActiveExecsResponse(execs=[command.status])
    )
    assert cli.run("exec", "get", "exec-1").stdout.splitlines() == [
        "exec_id=exec-1",
        "sandbox_id=box-1",
        "state=Running",
        "command=sh -c echo \\u{1b}[1m",
        "cwd=/w",
    ]
    assert cli.run("exec", "list", "box-1").stdout.splitlines() == [
        "EXEC ID  SANDBOX ID  STATE    COMMAND",
        "exec-1   box-1       Running  sh -c echo \\u{1b}[1m",
    ]
    assert fake.requests[-1][1].sandbox_id == "box-1"
    execs = json.loads(cli.run("exec", "list", "--json").stdout)["execs"]
    assert execs[0]["state"] == "EXEC_STATE_RUNNING"
    assert not fake.requests[-1][1].HasField("sandbox_id")
    done = cli.run("exec", "cancel", "exec-1")
    assert (done.returncode, done.stderr, command.cancelled.is_set()) == (0, "", True)
    command.end(FAILED, exit_code=3, error="broke")
    done = cli.run("exec", "cancel", "exec-1")
    assert (done.returncode, done.stderr) == (0, "The command has already ended.\n")
    lines = cli.run("exec", "get", "exec-1").stdout.splitlines()
    assert lines[-2:] == ["exit_code=3", "error=broke"]
    assert json.loads(cli.run("exec", "get", "exec-1", "--json").stdout)["exec"]["exit_code"] == 3


def test_unknown_exec_says_where_to_look(cli, fake):
    def refuse(_request, _context):
        raise Refusal(grpc.StatusCode.NOT_FOUND, "exec x not found", "EXEC_NOT_FOUND", exec_id="x")

    for name in ("GetExec", "CancelExec", "ReadExecOutput"):
        fake.methods[name] = refuse
    for word in ("get", "cancel", "logs"):
        done = cli.run("exec", word, "x")
        assert done.returncode == 1
        assert (
            done.stderr == "agentix: exec x not found; `agentix exec list` shows the running ones\n"
        )


def test_hostile_output_is_an_error(cli, command):
    command.fake.methods["ReadExecOutput"] = lambda request, context: iter([b"\xff\xff"])
    done = cli.run(*RUN)
    assert done.returncode == 1 and done.stderr.startswith("agentix: ")
