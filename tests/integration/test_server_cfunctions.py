"""Calls of C functions through agentix-server and agentix-worker, as a client sees them."""

import os
import re
from pathlib import Path

import pytest
from agxtest.server import wait_for
from agxtest.wire import Client, Session

WORKER = os.environ["AGENTIX_WORKER"]
FUNCTIONS = os.environ["TEST_FUNCTIONS"]
EXAMPLE = os.environ["C_FUNCTION_EXAMPLE"]
KINDS = {"unary": "sleep_wait", "stream": "endless", "bidi": "upper"}


@pytest.fixture(name="server")
def fixture_server(serve):
    return serve("--path", f"{FUNCTIONS}:{EXAMPLE}", worker=WORKER)


@pytest.fixture(name="client", params=[Client, Session])
def fixture_client(request, server):
    """The unchanged client of version 0.1.5, and one that grants credit."""
    with request.param(server) as client:
        yield client


def bidi(client, target, *items):
    call = client.start(target, kind="bidi")
    for seq, item in enumerate(items, 1):
        client.emit("bidi:in", call_id=call, item=item, seq=seq)
    client.emit("bidi:end_in", call_id=call, seq=len(items) + 1)
    return client.rest(call)


def test_each_shape_of_the_example(client):
    counted = {"words": 3, "bytes": 13}
    assert client.call("c:words::count", "one two three") == ("result", counted)
    call = client.start("c:words::split", "one two  three", kind="stream")
    assert client.rest(call) == (["one", "two", "three"], "stream:end", None)
    got = bidi(client, "c:words::reverse", b"abc", b"", b"xy")
    assert got == ([b"cba", b"", b"yx"], "bidi:end", None)


def test_a_failure_in_each_shape(client):
    kind, error = client.call("c:functions::fail")
    assert (kind, error["type"], error["message"]) == ("error", "ValueError", "this is 1 too many")
    values, end, error = client.rest(client.start("c:words::split", "a b c", 2, kind="stream"))
    assert (values, end, error["message"]) == (["a", "b"], "stream:error", "more than 2 words")
    values, end, error = bidi(client, "c:words::reverse", b"ab", "text")
    assert (values, end, error["type"]) == ([b"ba"], "bidi:error", "TypeError")


def test_what_does_not_exist_or_fit(client):
    assert client.call("c:nowhere::f")[1]["type"] == "FunctionNotFound"
    assert client.call("c:functions::f")[1]["type"] == "FunctionNotFound"
    assert client.call("c:../functions::add", 1, 2)[1]["type"] == "BadRequest"
    assert client.call("os::getpid")[1]["type"] == "PythonUnavailable"
    assert client.call("c:functions::add", "x", 2)[1]["type"] == "TypeError"


@pytest.mark.parametrize("kind", KINDS)
def test_a_cancel_in_each_shape_frees_the_worker(server, kind):
    with Session(server) as client:
        call = client.start(f"c:functions::{KINDS[kind]}", kind=kind)
        wait_for(lambda: server.health()["calls"] == 1, "the worker has the call")
        client.emit("cancel", call_id=call)
        _, end, error = client.rest(call)
        assert (end, error["type"], error["cancelled"]) == (f"{kind}:error", "Cancelled", True)
        wait_for(lambda: server.health()["calls"] == 0, "the worker has ended the call")


@pytest.mark.parametrize(("function", "code"), [("abort", -6), ("leave", 3)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_crash_ends_the_worker_and_not_the_server(server, kind, function, code):
    old = server.worker_pid()
    with Session(server) as victim, Client(server) as culprit:
        call = victim.start(f"c:functions::{KINDS[kind]}", kind=kind)
        wait_for(lambda: server.health()["calls"] == 1, "the worker has the victim's call")
        assert culprit.call(f"c:functions::{function}")[1]["type"] == "WorkerExited"
        _, end, error = victim.rest(call)
        assert (end, error["type"], error["returncode"]) == (f"{kind}:error", "WorkerExited", code)
        assert culprit.call("c:functions::add", 1, 2) == ("result", 3)
        assert server.worker_pid() != old


def test_a_time_limit_ends_the_call_and_cancels_the_function(server):
    with Session(server) as client:
        kind, error = client.call("c:functions::sleep_wait", timeout_ms=50)
        assert (kind, error["type"]) == ("error", "CallTimeout")
        wait_for(lambda: server.health()["calls"] == 0, "the function has seen it")


def test_a_reader_that_stops_holds_back_its_own_stream_only(server):
    with Session(server) as client:
        call = client.start("c:functions::endless", kind="stream")
        items = [client.event() for _ in range(48)]  # of 1,027 bytes each
        assert {name for name, _ in items} == {"stream:item"}
        assert client.call("c:functions::add", 1, 2) == ("result", 3)
        client.credit(call, 70)
        assert [client.event()[0] for _ in range(6)] == ["stream:item"] * 6
        client.emit("cancel", call_id=call)
        assert client.rest(call)[1] == "stream:error"


def test_the_lanes_are_not_for_what_functions_start(server):
    """Every descriptor of the worker that is a socket is closed on exec."""
    infos = Path(f"/proc/{server.worker_pid()}/fdinfo")
    links = Path(f"/proc/{server.worker_pid()}/fd")
    sockets = [fd.name for fd in links.iterdir() if "socket:" in os.readlink(fd)]
    sockets = [name for name in sockets if int(name) > 2]
    assert len(sockets) == 2
    for name in sockets:
        flags = re.search(r"flags:\s+(\d+)", (infos / name).read_text())[1]
        assert int(flags, 8) & os.O_CLOEXEC
