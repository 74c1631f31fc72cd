"""Sessions: the connection breaks in the middle of each shape, and the client resumes."""

import time

import pytest
from agxtest.server import wait_for
from agxtest.wire import Client, Closed, Session


def back(server, session, resumed=True):
    """Resumes the session on a new connection."""
    s = Session(server, session=session)
    assert s.hello["resumed"] is resumed
    return s


def test_a_client_without_protocol_1_sees_the_old_answer(serve_fake):
    server = serve_fake()
    with Client(server, connect=False) as c:
        assert list(c.connect({})) == ["sid"]
    with Session(server) as s:
        assert s.hello["proto"] == 1 and s.hello["resumed"] is False
        assert s.hello["resume_ms"] == 60000 and len(s.hello["session"]) == 32
        assert s.hello["max_message"] == 256 << 20


def test_events_carry_ascending_numbers(serve_fake):
    with Session(serve_fake()) as s:
        s.start("fake::count", 5, kind="stream")
        assert [s.event()[1]["seq"] for _ in range(6)] == [1, 2, 3, 4, 5, 6]


def test_a_unary_result_waits_for_its_client(serve_fake):
    server = serve_fake()
    s = Session(server)
    call = s.start("fake::bidi_echo", kind="bidi")  # a call that continues
    done = s.start("fake::echo", "x")
    assert s.event()[1]["call_id"] == done  # and is lost on its way to the user
    s.cut()
    with back(server, s.hello["session"]) as s:
        known, unknown = s.resume((done, 0, 64, 49152), (call, 0, 64, 49152), ("never", 0, 1, 1))
        assert (known, unknown) == ({done: 0, call: 0}, ["never"])
        assert s.event()[0] == "credit", "for the input of the call that runs on"
        name, payload = s.event()
        assert (name, payload["value"], payload["seq"]) == ("unary:result", ["x"], 1)
        s.ack(done, 1)
        s.send("40/log,")
        assert s.receive()[1].startswith(b"40/log,"), "what was before it has arrived too"
        s.cut()
    with back(server, s.hello["session"]) as s:
        assert s.resume((done, 1, 64, 49152), (call, 0, 64, 49152))[1] == [done]


@pytest.mark.parametrize("seen", [0, 1, 30, 64])
def test_a_stream_resumes_behind_the_last_item_seen(serve_fake, seen):
    server = serve_fake()
    s = Session(server)
    call = s.start("fake::count", 200, kind="stream")
    wait_for(lambda: server.health()["calls"] == 1, "the call runs")
    got = [s.event()[1]["value"] for _ in range(seen)]
    s.cut()
    with back(server, s.hello["session"]) as s:
        known, unknown = s.resume((call, seen, 1000, 1 << 30))
        assert (known, unknown) == ({call: 0}, [])
        values, name, _ = s.rest(call)
        assert (got + values, name) == (list(range(200)), "stream:end")


def test_a_stream_survives_many_breaks_without_loss_or_doubles(serve_fake):
    server = serve_fake()
    s = Session(server)
    session = s.hello["session"]
    call = s.start("fake::count", 500, kind="stream")
    got, seq, end = [], 0, None
    for round_ in range(40):
        for _ in range(17):
            name, payload = s.event()
            assert payload["seq"] == seq + 1
            seq += 1
            if name == "stream:end":
                end = name
                break
            got.append(payload["value"])
            if round_ % 3 == 0:
                s.ack(call, seq)
            if len(got) % 16 == 0:
                s.credit(call, len(got) + 64)
        if end:
            break
        s.cut()
        s = back(server, session)
        s.resume((call, seq, len(got) + 64, 1 << 30))
    s.close()
    assert got == list(range(500)) and end


def test_bidi_input_is_neither_lost_nor_doubled(serve_fake):
    server = serve_fake()
    s = Session(server)
    session = s.hello["session"]
    call = s.start("fake::bidi_echo", kind="bidi")
    for i in range(10):
        s.emit("bidi:in", call_id=call, item=i, seq=i + 1)
    s.cut()  # some of them may not have arrived
    s = back(server, session)
    known, unknown = s.resume((call, 0, 64, 49152))
    if unknown:  # then the start did not arrive either
        s.start("fake::bidi_echo", kind="bidi", call_id=call)
        known = {call: 0}
    assert 0 <= known[call] <= 10
    for i in range(max(0, known[call] - 2), 20):
        s.emit("bidi:in", call_id=call, item=i, seq=i + 1)
    s.emit("bidi:end_in", call_id=call, seq=21)
    s.emit("bidi:end_in", call_id=call, seq=21)
    values, name, _ = s.rest(call)
    s.close()
    assert (values, name) == (list(range(20)), "bidi:end")


def test_a_hole_in_the_input_ends_the_call(serve_fake):
    with Session(serve_fake()) as s:
        call = s.start("fake::bidi_echo", kind="bidi")
        s.emit("bidi:in", call_id=call, item=1, seq=1)
        s.emit("bidi:in", call_id=call, item=3, seq=3)
        assert s.rest(call)[2]["type"] == "BadRequest"


def test_the_workers_input_credit_names_the_input_it_has(serve_fake):
    with Session(serve_fake()) as s:
        call = s.start("fake::bidi_echo", kind="bidi")
        for i in range(16):
            s.emit("bidi:in", call_id=call, item=i, seq=i + 1)
        events = [s.event() for _ in range(17)]
        (credit,) = [p for name, p in events if name == "credit"]
        assert credit["n"] == 80 and credit["seq"] == 16


def test_calls_that_a_resume_does_not_name_are_cancelled(serve_fake):
    server = serve_fake()
    s = Session(server)
    s.start("fake::hang")
    wait_for(lambda: server.health()["calls"] == 1, "the call runs")
    s.cut()
    with back(server, s.hello["session"]) as s:
        assert s.resume() == ({}, [])
        wait_for(lambda: server.health()["calls"] == 0, "the call was cancelled")


def test_nothing_is_sent_before_the_resume(serve_fake):
    server = serve_fake()
    s = Session(server)
    call = s.start("fake::echo", 1)
    s.cut()
    with back(server, s.hello["session"]) as s:
        time.sleep(0.1)
        s.send("40/log,")
        assert s.receive()[1].startswith(b"40/log,"), "the result is not in front of it"
        known, unknown = s.resume((call, 0, 64, 49152))
        if known:
            assert s.event()[1]["value"] == [1]
        else:
            assert unknown == [call]


def test_an_unknown_session_is_a_new_one(serve_fake):
    server = serve_fake("--resume", "50ms")
    s = Session(server)
    s.start("fake::hang")
    wait_for(lambda: server.health()["calls"] == 1, "the call runs")
    s.cut()
    wait_for(lambda: server.health()["calls"] == 0, "the session is over, and its call with it")
    with back(server, s.hello["session"], resumed=False) as again:
        assert again.hello["session"] != s.hello["session"]
        assert again.call("fake::echo", 1) == ("result", [1])
    with back(server, "0" * 32, resumed=False):
        pass


def test_a_session_that_goes_on_elsewhere_leaves_its_old_connection(serve_fake):
    server = serve_fake()
    with Session(server) as old:
        call = old.start("fake::hang")
        wait_for(lambda: server.health()["calls"] == 1, "the call runs")
        with back(server, old.hello["session"]) as new:
            assert new.resume((call, 0, 64, 49152))[0] == {call: 0}
            with pytest.raises(Closed):
                old.receive()
            new.emit("cancel", call_id=call)
            assert new.event()[1]["error"]["type"] == "Cancelled"


def test_a_session_is_only_for_who_knows_its_name(serve_fake):
    """A client never receives the results of another one."""
    server = serve_fake()
    with Session(server) as mine, Session(server) as other:
        call = mine.start("fake::hang")
        wait_for(lambda: server.health()["calls"] == 1, "the call runs")
        other.emit("cancel", call_id=call)
        other.ack(call, 1)
        other.emit("resume", calls=[[call, 0, 1, 1]])
        assert other.call("fake::echo", 1) == ("result", [1])
        assert server.health()["calls"] == 1


def test_the_worker_dies_while_the_client_is_away(serve_fake):
    server = serve_fake()
    s = Session(server)
    calls = {kind: s.start("fake::hang", kind=kind) for kind in ("unary", "stream", "bidi")}
    wait_for(lambda: server.health()["calls"] == 3, "the calls run")
    s.cut()
    server.kill_worker()
    wait_for(lambda: server.health()["calls"] == 0, "the calls are over")
    with back(server, s.hello["session"]) as s:
        s.resume(*((c, 0, 64, 49152) for c in calls.values()))
        ends = dict((p["call_id"], (n, p["error"]["type"])) for n, p in (s.event() for _ in calls))
        assert ends == {c: (f"{k}:error", "WorkerExited") for k, c in calls.items()}


def test_results_that_are_not_acknowledged_are_bounded(serve_fake):
    server = serve_fake()
    s = Session(server)
    first = s.start("fake::size", 1 << 20)
    s.event()
    for _ in range(70):
        s.call("fake::size", 1 << 20)
    last = f"c{s.number}"
    s.cut()
    with back(server, s.hello["session"]) as s:
        s.resume((first, 0, 64, 49152), (last, 0, 64, 49152))
        ends = dict((p["call_id"], (n, p)) for n, p in (s.event() for _ in range(2)))
        assert ends[first][1]["error"]["type"] == "ResultUnavailable"
        assert len(ends[last][1]["value"]) == 1 << 20


def test_a_call_runs_at_most_once_whatever_breaks(serve_fake):
    server = serve_fake()
    s = Session(server)
    session = s.hello["session"]
    for i in range(30):
        call = s.start("fake::echo", i, call_id=f"once-{i}")
        s.cut()
        s = back(server, session)
        _, unknown = s.resume((call, 0, 64, 49152))
        if unknown:
            s.start("fake::echo", i, call_id=call)
        name, payload = s.event()
        assert (name, payload["value"]) == ("unary:result", [i])
        s.ack(call, payload["seq"])
    assert s.call("fake::frames", "call") == ("result", 31)
    s.close()
