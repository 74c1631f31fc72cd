"""SIGKILL of the real Python worker, of clients and of the server, in each phase of each shape."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from agxtest.server import children, hold, session_members, wait_for
from agxtest.wire import Client, Closed, Session

HERE = Path(__file__).resolve().parent
TARGETS = HERE / "targets"
SHAPES = ["unary", "stream", "bidi"]


@pytest.fixture(name="serve_python")
def fixture_serve_python(serve):
    def serve_python(*options, **settings):
        python = ["--python", sys.executable, "--package", os.environ["AGENTIX_PACKAGE"]]
        return serve(*python, "--path", TARGETS, *options, **settings)

    return serve_python


@pytest.fixture(name="place")
def fixture_place(tmp_path):
    """A directory for the files in which functions report their progress."""
    place = tmp_path / "place"
    place.mkdir()
    return place


def wait_for_phase(place, phase):
    wait_for((place / phase).exists, f"the function is at '{phase}'")


class Call:
    """A call in some phase, and the items that its client has read."""

    def __init__(self, client, place, target, *args, kind):
        self.client, self.place, self.kind = client, place, kind
        self.id = client.start(f"phases::{target}", *args, kind=kind)
        self.seq = 0

    def reach(self, phase):
        wait_for_phase(self.place, phase)

    def send(self, *items, end=False):
        for item in items:
            self.seq += 1
            self.client.emit("bidi:in", call_id=self.id, item=item, seq=self.seq)
        if end:
            self.client.emit("bidi:end_in", call_id=self.id, seq=self.seq + 1)

    def take(self, *expected):
        """Reads items, which must be exactly these."""
        for value in expected:
            name, payload = self.client.event()
            while name == "credit":
                name, payload = self.client.event()
            assert (payload["call_id"], payload["value"]) == (self.id, value), (name, payload)


# Each phase: the shape, and how a call gets there. It returns the items that the client has not
# read when the worker dies: all must still arrive (None: those of `endless` that the worker sent).


def just_sent(client, place, kind, worker):
    """The worker has not read it."""
    hold(worker)
    target = {"unary": "unary", "stream": "endless", "bidi": "bidi_deaf"}[kind]
    return Call(client, place, target, str(place), kind=kind), []


def running(client, place, kind, worker):
    """Before the first item."""
    target, args = {
        "unary": ("unary", ()),
        "stream": ("stream", (0,)),
        "bidi": ("bidi_deaf", ()),
    }[kind]
    call = Call(client, place, target, str(place), *args, kind=kind)
    call.reach("runs")
    return call, []


def running_in_a_thread(client, place, kind, worker):
    call = Call(client, place, "plain", str(place), kind=kind)
    call.reach("runs")
    return call, []


def between_items(client, place, kind, worker):
    """The client has read some items; others are in flight."""
    call = Call(client, place, "stream", str(place), 5, kind=kind)
    call.reach("runs")
    call.take(0, 1)
    return call, [2, 3, 4]


def after_the_last_item(client, place, kind, worker):
    call = Call(client, place, "stream", str(place), 3, kind=kind)
    call.take(0, 1, 2)
    call.reach("runs")
    return call, []


def out_of_credit(client, place, kind, worker):
    """The reader grants nothing, so that the generator waits in its `yield`."""
    call = Call(client, place, "endless", str(place), kind=kind)
    if isinstance(client, Session):
        call.take(*(f"{i:01000}" for i in range(50)))  # 49,152 bytes; the last one goes beyond
        return call, []
    call.reach("runs")
    return call, None


def while_input_flows(client, place, kind, worker):
    """The function has answered some items; the stopped worker never reads the others."""
    call = Call(client, place, "bidi", str(place), kind=kind)
    call.send(1, 2, 3)
    call.take(2, 4, 6)
    hold(worker)
    call.send(*range(40))
    return call, []


def after_the_inputs_end(client, place, kind, worker):
    call = Call(client, place, "bidi", str(place), kind=kind)
    call.send(5, end=True)
    call.reach("input_ended")
    call.reach("said_all")
    return call, [10, -1]


def after_the_last_output(client, place, kind, worker):
    call = Call(client, place, "bidi", str(place), kind=kind)
    call.send(5, end=True)
    call.take(10, -1)
    call.reach("said_all")
    return call, []


PHASES = [
    *((just_sent, kind) for kind in SHAPES),
    *((running, kind) for kind in SHAPES),
    (running_in_a_thread, "unary"),
    (between_items, "stream"),
    (after_the_last_item, "stream"),
    (out_of_credit, "stream"),
    (while_input_flows, "bidi"),
    (after_the_inputs_end, "bidi"),
    (after_the_last_output, "bidi"),
]


def open_descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


@contextlib.contextmanager
def nothing_is_left(server, client):
    """The next call works, on another worker; no zombie, no descriptor in the server or worker."""
    assert client.call("phases::add", 1, 2) == ("result", 3)
    assert client.call("phases::aadd", 1, 2) == ("result", 3)  # has made the event loop
    worker = server.worker_pid()
    before, workers = server.descriptors(), open_descriptors(worker)
    yield worker
    assert client.call("phases::add", 3, 4) == ("result", 7)  # and no event before its answer
    successor = server.worker_pid()
    assert successor != worker
    assert children(server.pid) == [successor], "no zombie is left"
    assert not session_members(worker)
    server.settle_descriptors(before)
    wait_for(lambda: open_descriptors(successor) <= workers, "the worker has no more than the last")


def check_worker_exited(kind, name, error):
    assert (name, error["type"]) == (f"{kind}:error", "WorkerExited"), error
    assert error["returncode"] == -9 and "killed by signal 9" in error["message"]
    assert error["cancelled"] is False


@pytest.mark.parametrize("new", [Client, Session])
@pytest.mark.parametrize(("phase", "kind"), PHASES, ids=lambda p: getattr(p, "__name__", p))
def test_a_killed_worker_ends_the_call_once(serve_python, place, new, phase, kind):
    server = serve_python()
    with new(server) as client, nothing_is_left(server, client) as worker:
        call, unread = phase(client, place, kind, worker)
        wait_for(lambda: server.health()["calls"] == 1, "the server has the call")
        os.kill(worker, signal.SIGKILL)
        values, name, error = client.rest(call.id)
        check_worker_exited(kind, name, error)
        if unread is None:
            unread = [f"{i:01000}" for i in range(len(values))]
        assert values == unread


@pytest.mark.parametrize("new", [Client, Session])
@pytest.mark.parametrize("kind", SHAPES)
def test_a_worker_killed_while_it_is_cancelled_adds_nothing(serve_python, place, new, kind):
    """The cancellation ended the call; the worker's death does not end it again."""
    server = serve_python()
    target = {"unary": "slow_to_cancel", "stream": "slow_to_cancel_stream"}
    with new(server) as client, nothing_is_left(server, client) as worker:
        name = target.get(kind, "slow_to_cancel_bidi")
        call = Call(client, place, name, str(place), kind=kind)
        if kind == "bidi":
            call.send(1)
        if kind != "unary":
            call.take(1)
        call.reach("runs")
        client.emit("cancel", call_id=call.id)
        _, name, error = client.rest(call.id)
        assert (name, error["type"]) == (f"{kind}:error", "Cancelled")
        call.reach("cancelled")
        assert server.health()["calls"] == 1, "the worker is still at it"
        os.kill(worker, signal.SIGKILL)
        wait_for(lambda: server.health()["calls"] == 0, "the server knows of its death")


class LatePython:
    """An interpreter that can be kept from running the worker."""

    def __init__(self, directory):
        directory.mkdir()
        self.directory, self.path = directory, directory / "python"
        script = f"exec {sys.executable} -I {HERE / 'late_python.py'} {directory}"
        self.path.write_text(f'#!/bin/sh\n{script} "$@"\n')
        self.path.chmod(0o755)

    def hold(self):
        (self.directory / "hold").touch()

    def release(self):
        (self.directory / "hold").unlink()

    def waits(self):
        """Waits for a process that is kept waiting, and returns its pid."""
        found = wait_for(lambda: list(self.directory.glob("waits-*")), "another worker starts")
        return int(found[0].name.removeprefix("waits-"))


@pytest.mark.parametrize("new", [Client, Session])
@pytest.mark.parametrize("kind", SHAPES)
def test_a_worker_killed_before_it_is_ready_ends_calls_that_wait(
    serve_python, tmp_path, place, new, kind
):
    python = LatePython(tmp_path / "late")
    server = serve_python("--python", python.path)
    with new(server) as client, nothing_is_left(server, client):
        python.hold()
        server.kill_worker()
        starting = python.waits()
        assert server.health()["worker"] == "starting"
        target = {"unary": "unary", "stream": "endless", "bidi": "bidi_deaf"}[kind]
        call = Call(client, place, target, str(place), kind=kind)
        if kind == "bidi":
            call.send(1, 2, end=True)
        wait_for(lambda: server.health()["calls"] == 1, "the call waits")
        os.kill(starting, signal.SIGKILL)
        values, name, error = client.rest(call.id)
        assert (values, name, error["type"]) == ([], f"{kind}:error", "WorkerUnavailable")
        assert error["returncode"] == -9 and "killed by signal 9" in error["message"]
        assert not (place / "runs").exists()
        python.release()


def test_a_worker_killed_with_calls_of_every_shape_ends_each_once(serve_python, place):
    server = serve_python()
    with Session(server) as client, nothing_is_left(server, client) as worker:
        calls = {}
        for i, kind in enumerate(SHAPES * 10):
            here = place / str(i)
            here.mkdir()
            call, _ = running(client, here, kind, worker)
            calls[call.id] = kind
        os.kill(worker, signal.SIGKILL)
        while calls:
            name, payload = client.event()
            check_worker_exited(calls.pop(payload["call_id"]), name, payload["error"])


# -- clients and the server

PROGRAM = """
import asyncio, sys
import phases
from agentix import Channel, RuntimeClient

async def main(url, kind, place):
    async with RuntimeClient(url) as client:
        if kind == "unary":
            await client.remote(phases.unary, place)
        elif kind == "stream":
            async for _ in client.remote(phases.stream, place, 3):
                pass
        else:
            inbox = Channel()
            await inbox.send(1)
            await inbox.close()
            async for _ in client.remote(phases.bidi, inbox, place):
                pass

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("kind", SHAPES)
def test_the_calls_of_a_killed_client_are_cancelled(serve_python, place, kind):
    server = serve_python("--resume", "300ms")
    server.worker_pid()
    before = server.descriptors()
    url = f"unix://{server.socket_path}"
    path = f"{os.environ['AGENTIX_PACKAGE']}:{TARGETS}"
    command = [sys.executable, "-c", PROGRAM, url, kind, place]
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path}) as client:
        wait_for_phase(place, "said_all" if kind == "bidi" else "runs")
        client.kill()
    wait_for_phase(place, "cancelled")
    wait_for(lambda: server.health()["calls"] == 0, "the call is over")
    server.settle_descriptors(before)
    with Client(server) as other:
        assert other.call("phases::add", 1, 2) == ("result", 3)


@pytest.mark.parametrize(("phase", "kind"), PHASES, ids=lambda p: getattr(p, "__name__", p))
def test_a_killed_server_takes_its_worker_along(serve_python, place, phase, kind):
    server = serve_python()
    worker = server.worker_pid()
    with Session(server) as client:
        phase(client, place, kind, worker)
        server.process.kill()
        with contextlib.suppress(ProcessLookupError):  # it may have seen the end already
            os.kill(worker, signal.SIGCONT)  # if the phase has stopped it
        server.stop(signal.SIGKILL, status=-9)  # waits for the worker's processes too
        with contextlib.suppress(ConnectionError), pytest.raises(Closed):
            while True:
                client.receive()
    wait_for(lambda: not os.path.exists(f"/proc/{worker}"), "nothing is left of the worker")
