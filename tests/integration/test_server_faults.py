"""Crashes and protocol errors: of the worker in each shape and phase, of clients, of the server."""

import os
import signal
import time

import pytest
from agxtest.server import children, hold, session_members, states, wait_for
from agxtest.wire import Client, Closed, Http, Polling, Session

SHAPES = ["unary", "stream", "bidi"]


def ends_with(client, call, kind, error_type):
    """Reads the call's end, checks its type and returns the error."""
    _, name, error = client.rest(call)
    assert (name, error["type"]) == (f"{kind}:error", error_type), error
    return error


# -- the worker dies


@pytest.mark.parametrize("kind", SHAPES)
def test_a_killed_worker_ends_running_calls_and_is_started_again(serve_fake, kind):
    """Ledger 3."""
    server = serve_fake()
    with Client(server) as old, Session(server) as new:
        server.worker_pid()
        before = server.descriptors()
        running = [(c, c.start("fake::hang", kind=kind)) for c in (old, new, old, new)]
        wait_for(lambda: server.health()["calls"] == 4, "the calls run")
        server.kill_worker()
        ends = set()
        for c, _ in running:
            name, payload = c.event()
            error = payload["error"]
            assert (name, error["type"]) == (f"{kind}:error", "WorkerExited")
            assert error["returncode"] == -9 and "signal 9" in error["message"]
            assert error["cancelled"] is False
            ends.add((c, payload["call_id"]))
        assert ends == set(running)
        assert old.call("fake::echo", 1) == ("result", [1])
        server.worker_pid()
        assert len(children(server.pid)) == 1, "no zombie is left"
        server.settle_descriptors(before)


@pytest.mark.parametrize("kind", SHAPES)
def test_a_worker_killed_before_it_is_ready_ends_calls_that_wait(serve_fake, kind):
    server = serve_fake(mode="never")
    with Client(server) as c:
        call = c.start("fake::hang", kind=kind)
        wait_for(lambda: server.health()["calls"] == 1, "the call waits")
        (pid,) = wait_for(lambda: children(server.pid), "the worker is there")
        os.kill(pid, signal.SIGKILL)
        error = ends_with(c, call, kind, "WorkerUnavailable")
        assert error["returncode"] == -9


def test_an_exit_code_is_told(serve_fake):
    with Client(serve_fake()) as c:
        error = ends_with(c, c.start("fake::end3"), "unary", "WorkerExited")
        assert error["returncode"] == 3 and "code 3" in error["message"]


def test_a_worker_killed_in_the_middle_of_a_stream_loses_no_item_sent_before(serve_fake):
    server = serve_fake()
    for client in (Client(server), Session(server)):
        with client as c:
            values, name, error = c.rest(c.start("fake::count_and_die", 20, kind="stream"))
            assert (values, name, error["type"]) == (
                list(range(20)),
                "stream:error",
                "WorkerExited",
            )


def test_a_worker_killed_by_bidi_input_ends_the_call(serve_fake):
    with Client(serve_fake()) as c:
        call = c.start("fake::bidi_die", kind="bidi")
        for i in range(10):
            c.emit("bidi:in", call_id=call, item=i)
        ends_with(c, call, "bidi", "WorkerExited")


def test_an_answer_sent_before_death_is_an_answer(serve_fake, tmp_path):
    """Even if the server sees both at the same moment."""
    server = serve_fake()
    with Client(server) as c:
        for size in (0, 150_000):
            worker = server.worker_pid()
            gate = tmp_path / f"gate{size}"
            call = c.start("fake::answer_and_die", size, str(gate))
            wait_for(lambda: server.health()["calls"] == 1, "the call runs")
            hold(server.pid)
            gate.touch()
            wait_for(lambda pid=worker: states(pid) == {"Z"}, "the worker has ended")
            os.kill(server.pid, signal.SIGCONT)
            assert c.rest(call) == ([b"x" * size], "unary:result", None)
            wait_for(lambda pid=worker: server.worker_pid() != pid, "another worker is there")


def test_children_of_a_dead_worker_are_gone(serve_fake):
    server = serve_fake()
    with Client(server) as c:
        session = c.call("fake::surroundings")[1]["sid"]
        ends_with(c, c.start("fake::child_then_die"), "unary", "WorkerExited")
        assert c.call("fake::echo", 1) == ("result", [1])
        wait_for(lambda: not session_members(session), "the child is gone")


def test_many_calls_in_flight_end_soon_when_the_worker_dies(serve_fake):
    server = serve_fake()
    with Client(server) as c:
        n = 30_000
        for _ in range(n // 1000):
            data = b"".join(
                c.encode("unary", {"call_id": f"{_}-{i}", "target": "fake::never"})
                for i in range(1000)
            )
            c.socket.sendall(data)
        wait_for(lambda: server.health()["calls"] == n, "all calls are taken")
        server.kill_worker()
        begin = time.monotonic()
        ends = {c.event()[1]["call_id"] for _ in range(n)}
        assert len(ends) == n
        assert time.monotonic() - begin < 60
        assert c.call("fake::echo", 1) == ("result", [1])


# -- the worker does not keep the protocol


@pytest.mark.parametrize(
    "target",
    ["twice", "item_of_unary", "unknown_call", "no_map", "half_and_die", "too_long", "close_lanes"],
)
def test_a_worker_that_breaks_the_protocol_is_replaced(serve_fake, target):
    server = serve_fake()
    with Client(server) as c:
        first = server.worker_pid()
        other = c.start("fake::hang")
        mine = c.start(f"fake::{target}")
        ends = {}
        while set(ends) != {other, mine}:
            name, payload = c.event()
            assert payload["call_id"] not in ends, "one terminal event"
            ends[payload["call_id"]] = (name, payload)
        assert ends[other][1]["error"]["type"] == "WorkerExited"
        assert c.call("fake::echo", 1) == ("result", [1])
        assert server.worker_pid() != first


def test_a_worker_without_regard_for_credit_is_replaced(serve_fake):
    with Session(serve_fake()) as s:
        values, _, error = s.rest(s.start("fake::flood", 100_000, kind="stream"))
        assert error["type"] == "WorkerExited" and "credit" in error["message"]
        assert values == list(range(64))


def test_a_frame_in_pieces_and_an_unknown_type_are_no_fault(serve_fake):
    with Client(serve_fake()) as c:
        assert c.call("fake::byte_by_byte") == ("result", "slow")
        assert c.call("fake::unknown_type") == ("result", "ok")


# -- the worker does not start


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("exit3", "code 3"),
        ("error", "no pydantic"),
        ("error_hangs", "no pydantic"),
        ("garbage", ""),
    ],
)
def test_calls_end_with_the_reason_when_the_worker_cannot_start(serve_fake, mode, text):
    """Ledger 4."""
    with Client(serve_fake(mode=mode)) as c:
        for kind in SHAPES:
            error = ends_with(c, c.start("fake::echo", kind=kind), kind, "WorkerUnavailable")
            assert text in error["message"]


def test_a_worker_that_is_no_program_is_told_of(serve, tmp_path):
    program = tmp_path / "broken"
    program.write_text("#!/nonexistent/interpreter\n")
    program.chmod(0o755)
    server = serve(worker=program)
    with Client(server) as c:
        error = ends_with(c, c.start("fake::echo"), "unary", "WorkerUnavailable")
        assert "No such file" in error["message"]


def test_a_worker_that_dies_again_and_again_is_started_later_and_later(serve_fake):
    began = time.monotonic()
    server = serve_fake(mode="exit3")
    wait_for(lambda: server.log().count("worker.gone") >= 5, "it is started five times")
    assert time.monotonic() - began > 0.34  # 0, 50, 100, 200 ms between them


# -- clients die


@pytest.mark.parametrize("kind", SHAPES)
def test_calls_of_an_old_client_that_is_gone_are_cancelled(serve_fake, kind):
    server = serve_fake()
    with Client(server) as watcher:
        for leave in (Client.cut, Client.close, lambda c: c.send("41"), lambda c: c.send("1")):
            client = Client(server)
            client.start("fake::hang", kind=kind)
            wait_for(lambda: server.health()["calls"] == 1, "the call runs")
            leave(client)
            wait_for(lambda: server.health()["calls"] == 0, "the call was cancelled")
            client.close()
        assert watcher.call("fake::frames", "cancel") == ("result", 4)


def test_calls_of_a_session_are_cancelled_when_its_window_is_over(serve_fake):
    server = serve_fake("--resume", "300ms")
    client = Session(server)
    client.start("fake::hang")
    wait_for(lambda: server.health()["calls"] == 1, "the call runs")
    began = time.monotonic()
    client.cut()
    wait_for(lambda: server.health()["calls"] == 0, "the window is over")
    assert time.monotonic() - began > 0.29


def test_a_session_that_says_goodbye_is_gone_at_once(serve_fake):
    server = serve_fake()
    with Session(server) as s:
        s.start("fake::hang")
        wait_for(lambda: server.health()["calls"] == 1, "the call runs")
        s.send("41")
        wait_for(lambda: server.health()["calls"] == 0, "the call was cancelled")


def test_a_client_that_leaves_in_the_middle_of_a_message_is_forgotten(serve_fake):
    server = serve_fake()
    with Client(server) as c:
        c.call("fake::echo")
        before = server.descriptors()
        for cut_at in (1, 3, 20, 60):
            client = Client(server)
            data = client.encode("unary", {"call_id": "x", "target": "fake::hang"})
            client.socket.sendall(data[:cut_at])
            client.close()
        server.settle_descriptors(before)
        assert c.call("fake::echo", 1) == ("result", [1])


# -- the server stops


def test_sigterm_lets_calls_end_in_their_grace(serve_fake):
    server = serve_fake("--grace", "60s")
    with Client(server) as c:
        call = c.start("fake::bidi_echo", kind="bidi")
        c.emit("bidi:in", call_id=call, item=1)
        assert c.event()[1]["value"] == 1
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "server.stopping" in server.log(), "the server stops")
        c.emit("bidi:in", call_id=call, item=2)
        c.emit("bidi:end_in", call_id=call)
        assert c.rest(call) == ([2], "bidi:end", None)
        with pytest.raises(Closed) as closed:
            c.receive()
        assert closed.value.code == 1012
    server.stop()


@pytest.mark.parametrize("kind", SHAPES)
def test_sigterm_ends_calls_with_an_error_before_the_connection(serve_fake, kind):
    """Ledger 23."""
    server = serve_fake("--grace", "100ms")
    with Client(server) as old, Session(server) as new:
        calls = [(c, c.start("fake::hang", kind=kind)) for c in (old, new)]
        wait_for(lambda: server.health()["calls"] == 2, "the calls run")
        server.process.send_signal(signal.SIGTERM)
        for c, call in calls:
            ends_with(c, call, kind, "ServerShutdown")
            with pytest.raises(Closed) as closed:
                c.receive()
            assert closed.value.code == 1012
    server.stop()


def test_sigterm_ends_calls_of_a_polling_client_too(serve_fake):
    """Ledger 23, over polling: the error comes in the answer to the GET that waits."""
    server = serve_fake("--grace", "100ms")
    p = Polling(server)
    p.start("fake::hang")
    wait_for(lambda: server.health()["calls"] == 1, "the call runs")
    with Http(server) as h:
        assert h.request("/health")[0] == 200  # the server has the connection
        h.socket.sendall(f"GET {p.url} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        server.health()  # a later request has its answer, so the GET has been read
        server.process.send_signal(signal.SIGTERM)
        status, _, body = h.answer()
    assert status == 200
    p.queue = body.split(b"\x1e")
    name, payload = p.event()
    assert (name, payload["error"]["type"]) == ("unary:error", "ServerShutdown")
    assert p.queue == [b"1"]
    server.stop()


def test_a_new_call_after_sigterm_is_refused(serve_fake):
    server = serve_fake("--grace", "60s")
    with Client(server) as c:
        call = c.start("fake::bidi_echo", kind="bidi")
        wait_for(lambda: server.health()["calls"] == 1, "the call runs")
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "server.stopping" in server.log(), "the server stops")
        ends_with(c, c.start("fake::hang", call_id="late"), "unary", "ServerShutdown")
        c.emit("bidi:end_in", call_id=call)
        assert c.rest(call)[1] == "bidi:end"
    server.stop()


def test_a_second_sigterm_ends_the_grace(serve_fake):
    server = serve_fake("--grace", "10m")
    with Client(server) as c:
        call = c.start("fake::never")
        wait_for(lambda: server.health()["calls"] == 1, "the call runs")
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "server.stopping" in server.log(), "the server stops")
        server.process.send_signal(signal.SIGTERM)
        ends_with(c, call, "unary", "ServerShutdown")
    server.stop()


def test_signals_in_any_number_end_with_status_0(serve_fake):
    server = serve_fake("--grace", "100ms")
    with Client(server) as c:
        c.start("fake::hang")
        wait_for(lambda: server.health()["calls"] == 1, "the call runs")
        while server.process.poll() is None:
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.0005)
    server.stop()


@pytest.mark.parametrize("mode", ["never", "late", "exit3", "error_hangs", "garbage"])
def test_a_server_whose_worker_is_not_well_stops_too(serve_fake, mode):
    serve_fake("--grace", "100ms", mode=mode).stop()


def test_a_client_that_reads_nothing_does_not_keep_the_server_from_stopping(serve_fake):
    server = serve_fake("--grace", "100ms")
    c = Client(server)
    c.start("fake::count", 20_000, 10_000, kind="stream")
    time.sleep(0.3)
    server.stop()
    c.close()


def test_a_killed_server_takes_its_worker_along(serve_fake):
    server = serve_fake()
    worker = server.worker_pid()
    with Client(server) as c:
        c.start("fake::hang")
        server.stop(signal.SIGKILL, status=-9)
        with pytest.raises((Closed, ConnectionError)):
            c.receive()
    wait_for(lambda: not os.path.exists(f"/proc/{worker}"), "the worker saw its sockets close")
