"""Calls through agentix-server with a scripted worker: shapes, errors, credit, sizes."""

import time

import msgpack
import pytest
from agxtest.server import assert_grows_less, rss_kib, wait_for
from agxtest.wire import Client, Closed, Session, random_id

MIB = 1 << 20


def test_the_three_shapes(serve_fake):
    server = serve_fake()
    for client in (Client(server), Session(server), Client(server, unix=True)):
        with client as c:
            assert c.call("fake::echo", 1, "two", [3]) == ("result", [1, "two", [3]])
            call = c.start("fake::count", 5, kind="stream")
            assert c.rest(call) == ([0, 1, 2, 3, 4], "stream:end", None)
            call = c.start("fake::bidi_echo", kind="bidi")
            for i in range(5):
                c.emit("bidi:in", call_id=call, item=i, seq=i + 1)
            c.emit("bidi:end_in", call_id=call, seq=6)
            assert c.rest(call) == ([0, 1, 2, 3, 4], "bidi:end", None)


def test_a_call_sent_before_the_worker_is_ready_is_answered_when_it_is(serve_fake):
    with Client(serve_fake(mode="late")) as c:
        assert c.call("fake::echo", 1) == ("result", [1])


def test_the_connection_does_not_wait_for_the_worker(serve_fake):
    server = serve_fake(mode="never")
    with Client(server):
        pass
    assert server.health()["worker"] == "starting"


def test_two_clients_may_use_the_same_call_id(serve_fake):
    server = serve_fake()
    with Client(server) as one, Client(server) as two, Session(server) as three:
        for client in (one, two, three):
            client.start("fake::count", 3, kind="stream", call_id="same")
        for client in (one, two, three):
            assert client.rest("same") == ([0, 1, 2], "stream:end", None)
        one.start("fake::hang", call_id="same")
        assert two.call("fake::echo", 2, call_id="same") == ("result", [2])
        one.emit("cancel", call_id="same")
        assert one.event()[0] == "unary:error"


def test_a_call_id_in_use_on_the_connection_is_refused_and_the_first_call_goes_on(serve_fake):
    with Client(serve_fake()) as c:
        call = c.start("fake::hang")
        kind, error = c.call("fake::echo", call_id=call)
        assert (kind, error["type"]) == ("error", "DuplicateCall")
        c.emit("cancel", call_id=call)
        _, payload = c.event()
        assert payload["error"]["cancelled"] is True


@pytest.mark.parametrize("kind", ["unary", "stream", "bidi"])
def test_a_cancel_is_answered_at_once_and_reaches_the_worker(serve_fake, kind):
    server = serve_fake()
    with Client(server) as c:
        call = c.start("fake::hang", kind=kind)
        c.emit("cancel", call_id=call)
        name, payload = c.event()
        assert name == f"{kind}:error"
        assert payload["error"]["type"] == "Cancelled" and payload["error"]["cancelled"] is True
        assert payload["error"]["message"] == "remote call cancelled"
        assert c.call("fake::frames", "cancel") == ("result", 1)
        wait_for(lambda: server.health()["calls"] == 0, "the worker has ended the call")


def test_a_worker_that_ignores_a_cancel_keeps_nobody_waiting(serve_fake):
    server = serve_fake()
    with Client(server) as c:
        call = c.start("fake::never")
        c.emit("cancel", call_id=call)
        assert c.event()[1]["error"]["type"] == "Cancelled"
        assert c.call("fake::echo", call_id=call) == ("result", [])
        assert server.health()["calls"] == 1


def test_what_ended_or_never_was_is_ignored(serve_fake):
    with Client(serve_fake()) as c:
        for event in ("cancel", "bidi:in", "bidi:end_in", "credit", "ack", "resume", "news", ""):
            c.emit(event, call_id="nobody", item=1)
        c.emit("unary:result", call_id="nobody", value=1)
        c.send("42" + '["unary",{"call_id":"text"}]')
        name, payload = c.event()
        assert (name, payload["call_id"], payload["error"]["type"]) == (
            "unary:error",
            "",
            "BadRequest",
        )
        assert c.call("fake::echo", 1) == ("result", [1])


def refused(client, payload, event="unary"):
    """Type and message of the error that answers a payload, and the call_id it names."""
    client.emit_raw(event, payload if isinstance(payload, bytes) else msgpack.packb(payload))
    name, answer = client.event()
    assert name == event.replace(":start", "") + ":error"
    return answer["call_id"], answer["error"]["type"], answer["error"]["message"]


def test_requests_that_are_wrong_are_told_why(serve_fake):
    whole = {"call_id": "a", "callable_payload": b"x", "display_name": "m::f", "shape": "unary"}
    with Client(serve_fake()) as c:
        assert refused(c, {}) == ("", "BadRequest", "missing call_id")
        assert refused(c, whole | {"call_id": 7}) == ("", "BadRequest", "missing call_id")
        assert refused(c, whole | {"call_id": None}) == ("", "BadRequest", "missing call_id")
        for field in ("callable_payload", "display_name", "shape"):
            lacks = {k: v for k, v in whole.items() if k != field}
            assert refused(c, lacks) == ("a", "KeyError", f"'{field}'")
        assert refused(c, whole | {"display_name": ""})[:2] == ("a", "ValidationError")
        assert refused(c, whole | {"shape": "triangle"})[:2] == ("a", "ValidationError")
        assert refused(c, whole | {"args": 7})[:2] == ("a", "BadRequest")
        assert refused(c, whole | {"target": "m::f"})[:2] == ("a", "BadRequest")
        for name in ("type", "id", "kind", "flags", "max"):
            assert refused(c, whole | {name: 1})[:2] == ("a", "BadRequest")
        for event in ("stream", "bidi:start"):
            assert refused(c, {}, event) == ("", "BadRequest", "missing call_id")


def test_a_payload_that_cannot_be_read_is_answered(serve_fake):
    """Ledger 20: the answer has the call's id if the id can be read."""
    good = msgpack.packb({"call_id": "a", "target": "fake::echo", "args": [1], "kwargs": {}})
    with Client(serve_fake()) as c:
        assert refused(c, b"\xc1")[:2] == ("", "BadRequest")
        assert refused(c, b"")[:2] == ("", "BadRequest")
        assert refused(c, b"\x93\x01\x02\x03")[:2] == ("", "BadRequest")
        assert refused(c, good[:-1])[:2] == ("a", "BadRequest")
        assert refused(c, good[:-1] + b"\xc1")[:2] == ("a", "BadRequest")
        assert c.call("fake::echo", 1) == ("result", [1])


def test_a_call_id_may_be_any_text(serve_fake):
    with Client(serve_fake()) as c, Session(c_server := serve_fake()) as s:
        for client in (c, s):
            for call_id in ("", "a\0b", "a", "ä" * 100, "x" * 10000):
                for _ in range(2):
                    assert client.call("fake::echo", 1, call_id=call_id) == ("result", [1])
        assert c_server.health()["calls"] == 0


def test_a_call_id_as_long_as_a_message_harms_nobody(serve_fake):
    server = serve_fake("--max-message", "64k")
    most = 65536 - len(msgpack.packb({"call_id": "", "target": "x"})) - 2
    for size in range(most - 20, most + 3):
        with Session(server, max_message=65536) as c:
            c.emit("unary", call_id="i" * size, target="x")
            try:
                _, answer = c.event()
                assert answer["error"]["type"] == "ModuleNotFoundError"
            except Closed as closed:
                assert closed.code == 1009 and size > most
    assert server.process.poll() is None


def test_integer_keys_in_arguments_pass(serve_fake):
    """Ledger 7."""
    with Client(serve_fake()) as c:
        assert c.call("fake::echo", {1: "x"}) == ("result", [{1: "x"}])


def test_the_worker_learns_what_the_client_can_take(serve_fake):
    server = serve_fake()
    with Client(server) as old, Session(server) as new, Session(server, max_message=8 * MIB) as big:
        fields = old.call("fake::fields")[1]
        assert (fields["flags"], fields["max"], fields["kind"]) == (0, 4 * MIB, "unary")
        assert new.call("fake::fields")[1]["flags"] == 3
        assert big.call("fake::fields")[1]["max"] == 8 * MIB


@pytest.mark.deadline(120)
def test_large_arguments_and_results_up_to_the_limits(serve_fake):
    """Ledger 9 and 10."""
    server = serve_fake()
    with Client(server) as c, Session(server, max_message=64 * MIB) as s:
        for size in (999_000, 1_000_000, 1_100_000, 3 * MIB, 4 * MIB - 200):
            assert c.call("fake::echo", b"x" * size) == ("result", [b"x" * size])
        assert len(c.call("fake::size", 4 * MIB - 200)[1]) == 4 * MIB - 200
        for size in (4 * MIB, 5_000_000, 32 * MIB):
            kind, error = c.call("fake::size", size)
            assert (kind, error["type"]) == ("error", "MessageTooLarge")
            assert str(4 * MIB) in error["message"]
        assert len(s.call("fake::size", 40 * MIB)[1]) == 40 * MIB
        assert s.call("fake::size", 64 * MIB)[1]["type"] == "MessageTooLarge"
        assert c.call("fake::echo", 1) == ("result", [1])


def test_an_answer_at_the_servers_own_limit_ends_one_call_and_not_the_worker(serve_fake):
    server = serve_fake("--max-message", "64k")
    worker = server.worker_pid()
    with Session(server, max_message=64 << 10) as s:
        for size in range(65536 - 100, 65536 + 100, 7):
            kind, value = s.call("fake::size", size)
            assert kind == "result" or value["type"] == "MessageTooLarge"
    assert server.worker_pid() == worker


def test_an_item_that_is_too_large_ends_its_stream(serve_fake):
    with Client(serve_fake()) as c:
        call = c.start("fake::count", 3, 5_000_000, kind="stream")
        values, name, error = c.rest(call)
        assert (values, name, error["type"]) == ([], "stream:error", "MessageTooLarge")


def test_a_deadline_ends_the_call_in_client_and_worker(serve_fake):
    with Client(serve_fake()) as c:
        begin = time.monotonic()
        for kind in ("unary", "stream", "bidi"):
            call = c.start("fake::hang", kind=kind, timeout_ms=50)
            name, payload = c.event()
            assert (name, payload["call_id"]) == (f"{kind}:error", call)
            assert payload["error"]["type"] == "CallTimeout"
        assert 0.14 < time.monotonic() - begin < 60
        assert c.call("fake::frames", "cancel") == ("result", 3)
        assert c.call("fake::echo", timeout_ms=60000) == ("result", [])


def test_too_many_calls_are_refused(serve_fake):
    with Client(serve_fake("--max-calls", "3")) as c:
        held = [c.start("fake::hang") for _ in range(3)]
        assert c.call("fake::echo")[1]["type"] == "TooManyCalls"
        c.emit("cancel", call_id=held[0])
        assert c.event()[1]["call_id"] == held[0]
        assert c.call("fake::echo", 1) == ("result", [1])


def test_credit_holds_a_producer_back(serve_fake):
    with Session(serve_fake()) as s:
        call = s.start("fake::count", 200, kind="stream")
        got = [s.event()[1]["value"] for _ in range(64)]
        assert s.call("fake::echo", "next") == ("result", ["next"]), "no item came without credit"
        s.credit(call, 65)
        got.append(s.event()[1]["value"])
        assert s.call("fake::echo", "next") == ("result", ["next"])
        s.credit(call, 60)
        s.credit(call, 1000)
        values, name, _ = s.rest(call)
        assert (got + values, name) == (list(range(200)), "stream:end")


def test_input_past_its_credit_ends_the_call_of_a_client_that_knows_better(serve_fake):
    with Session(serve_fake()) as s:
        call = s.start("fake::bidi_deaf", kind="bidi")
        for i in range(65):
            s.emit("bidi:in", call_id=call, item=i, seq=i + 1)
        assert s.event()[1]["error"]["type"] == "InputOverflow"
        assert s.call("fake::echo", 1) == ("result", [1])


@pytest.mark.deadline(120)
def test_input_of_the_old_client_is_capped(serve_fake):
    """Ledger 22."""
    server = serve_fake()
    with Client(server) as c:
        call = c.start("fake::bidi_deaf", kind="bidi")
        for _ in range(20):
            c.emit("bidi:in", call_id=call, item=b"x" * MIB)
        name, payload = c.event()
        assert (name, payload["error"]["type"]) == ("bidi:error", "InputOverflow")
        assert c.call("fake::echo", 1) == ("result", [1])


def test_bidi_input_in_the_same_segment_as_its_start_is_not_lost(serve_fake):
    with Client(serve_fake()) as c:
        start = {"call_id": "b", "target": "fake::bidi_echo", "args": [], "kwargs": {}}
        data = c.encode("bidi:start", start)
        data += b"".join(c.encode("bidi:in", {"call_id": "b", "item": i}) for i in range(100))
        c.socket.sendall(data + c.encode("bidi:end_in", {"call_id": "b"}))
        assert c.rest("b") == (list(range(100)), "bidi:end", None)


def test_a_consumer_that_stops_reading_holds_back_only_itself(serve_fake):
    """Ledger 22: memory of the server stays bounded."""
    server = serve_fake()
    with Client(server) as slow, Client(server) as quick, Session(server) as session:
        before = rss_kib(server.pid)
        slow_call = slow.start("fake::count", 20_000, 10_000, kind="stream")
        session_call = session.start("fake::count", 20_000, 10_000, kind="stream")
        for i in range(300):
            assert quick.call("fake::echo", i) == ("result", [i])
        time.sleep(0.5)
        assert_grows_less(server.pid, before, 4096)  # 200 MB wait in the worker
        for client, call in ((slow, slow_call), (session, session_call)):
            client.emit("cancel", call_id=call)
            while (event := client.event())[0] != "stream:error":
                assert event[0] == "stream:item"
            assert client.call("fake::echo", 1) == ("result", [1])


def test_the_worker_can_answer_on_either_lane_and_choose_one(serve_fake):
    with Client(serve_fake()) as c:
        assert c.call("fake::other_lane") == ("result", 0)
        assert c.call("fake::other_lane") == ("result", 1)


def test_an_event_with_an_id_is_acknowledged(serve_fake):
    with Client(serve_fake()) as c:
        payload = msgpack.packb({"call_id": "x", "target": "fake::hang"})
        c.send('451-12["unary",{"_placeholder":true,"num":0}]')
        c.send(payload, 2)
        assert c.receive() == (1, b"4312[]")


def test_many_calls_of_many_clients_get_their_own_answers(serve_fake):
    server = serve_fake()
    clients = [Client(server) if i % 2 else Session(server) for i in range(20)]
    sent = [{} for _ in clients]
    for _ in range(50):
        for client, mine in zip(clients, sent, strict=True):
            value = random_id()
            mine[client.start("fake::echo", value)] = value
    for client, mine in zip(clients, sent, strict=True):
        for _ in range(50):
            name, payload = client.event()
            assert name == "unary:result" and payload["value"] == [mine.pop(payload["call_id"])]
        client.close()
