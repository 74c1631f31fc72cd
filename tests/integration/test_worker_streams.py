"""The Python worker: streams and bidi calls, credit, fairness."""

import sys
import time

import pytest
import worker_peer
from worker_peer import LOOP, OURS, THREAD, TIMEOUT_S, WorkerPeer

sys.path.insert(0, str(worker_peer.TARGETS))

import plain
import shapes

BOTH = pytest.mark.parametrize("lane", [LOOP, THREAD])


@pytest.fixture
def worker():
    with WorkerPeer() as worker:
        yield worker


def items(worker, call, n):
    return [worker.recv(type="stream_item", id=call)["value"] for _ in range(n)]


def credit(worker, call, n, size=1 << 30, lane=LOOP):
    worker.send({"type": "credit", "id": call, "n": n, "bytes": size}, lane)


def feed(worker, call, *values, lane=LOOP):
    for value in values:
        worker.send({"type": "bidi_in", "id": call, "item": value}, lane)


def seen_at_last(worker, what):
    """The reports of the functions, once the last one has arrived: a refused item first ends its
    call, and then closes the generator."""
    until = time.monotonic() + TIMEOUT_S
    while (seen := worker.call(shapes.what_was_seen))[-1:] != [what]:
        assert time.monotonic() < until, seen
        time.sleep(0.002)
    return seen


# ---- streams ----


@BOTH
@pytest.mark.parametrize("fn", [shapes.count, shapes.count_slowly])
def test_stream_gives_its_items_in_order_and_ends(worker, fn, lane):
    call = worker.start(fn, 20, kind="stream", lane=lane)
    assert items(worker, call, 20) == list(range(20))
    assert worker.answer(call)["type"] == "stream_end"
    assert worker.silent(0.05)


def test_empty_stream_just_ends(worker):
    call = worker.start(shapes.count, 0, kind="stream")
    assert worker.recv(id=call)["type"] == "stream_end"


@BOTH
def test_stream_waits_for_credit_in_items(worker, lane):
    call = worker.start(shapes.count, 1000, kind="stream", lane=lane)
    assert items(worker, call, 64) == list(range(64))
    assert worker.silent(0.1)
    credit(worker, call, 70, lane=lane)
    assert items(worker, call, 6) == list(range(64, 70))
    assert worker.silent(0.1)
    credit(worker, call, 65, lane=lane)  # a late credit takes nothing back
    assert worker.silent(0.05)
    credit(worker, call, 1000, lane=lane)
    assert items(worker, call, 930) == list(range(70, 1000))
    credit(worker, call, 1001, lane=lane)
    assert worker.answer(call)["type"] == "stream_end"


def test_stream_waits_for_credit_in_bytes_and_a_large_item_still_goes(worker):
    call = worker.start(shapes.chunks, 10, 40000, kind="stream")
    assert len(items(worker, call, 2)) == 2
    assert worker.silent(0.1)
    assert len(worker.call(shapes.what_was_seen)) == 2, "the generator ran ahead"
    credit(worker, call, 100, 3 * 40000)
    items(worker, call, 1)
    assert worker.silent(0.05)
    credit(worker, call, 100)
    items(worker, call, 7)
    assert worker.answer(call)["type"] == "stream_end"
    call = worker.start(shapes.chunks, 1, 5_000_000, kind="stream")
    assert len(items(worker, call, 1)[0]) == 5_000_000


def test_generator_that_never_awaits_lets_the_loop_run(worker):
    call = worker.start(shapes.stream_for_ever, kind="stream")
    credit(worker, call, 1 << 40, 1 << 40)
    items(worker, call, 100)
    for _ in range(20):
        worker.frames.clear()
        assert worker.call(plain.aadd, 1) == 3
    worker.frames.clear()
    worker.send({"type": "cancel", "id": call})
    assert worker.answer(call)["error"]["cancelled"] is True
    assert worker.call(shapes.what_was_seen) == ["cancelled", "closed"]


def test_result_goes_ahead_of_items_that_wait(worker):
    call = worker.start(shapes.chunks, 100_000, 1000, kind="stream")
    credit(worker, call, 1 << 40, 1 << 40)
    time.sleep(0.3)  # the test does not read: the socket and the worker's queue are full
    other = worker.start(plain.aadd, 1)
    before = 0
    while (frame := worker.recv()).get("id") != other:
        before += 1
    assert frame["value"] == 3
    assert before < 1500, "behind everything that was queued"


def test_worker_that_nobody_reads_holds_its_generators_back(worker):
    call = worker.start(shapes.chunks, 1_000_000, 1000, kind="stream")
    credit(worker, call, 1 << 40, 1 << 40)
    time.sleep(0.5)
    status = f"/proc/{worker.process.pid}/status"
    with open(status) as file:
        rss = next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
    assert rss < 80_000, f"{rss} kB"
    items(worker, call, 10)


def test_many_streams_run_beside_each_other(worker):
    calls = [worker.start(shapes.count_together, 5, 200, kind="stream") for _ in range(200)]
    for call in calls:
        assert items(worker, call, 5) == list(range(5))
        assert worker.answer(call)["type"] == "stream_end"


def test_failure_in_a_stream_follows_its_items(worker):
    call = worker.start(shapes.fail_after, 3, kind="stream")
    frames = [worker.recv(id=call) for _ in range(4)]
    assert [frame["type"] for frame in frames] == ["stream_item"] * 3 + ["error"]
    assert frames[3]["error"]["type"] == "ValueError"
    assert "fail_after" in frames[3]["error"]["traceback"]
    assert worker.silent(0.05)


def test_item_that_cannot_be_sent_ends_the_stream_and_closes_the_generator(worker):
    call = worker.start(shapes.bad_item, kind="stream")
    assert items(worker, call, 1) == [1]
    error = worker.answer(call)["error"]
    assert error["type"] == "SerializationError"
    assert error["message"].startswith("failed to serialize item: ")
    assert worker.call(shapes.what_was_seen) == ["closed"]
    assert worker.silent(0.05)


def test_item_past_the_receivers_limit_ends_the_stream(worker):
    call = worker.start(shapes.chunks, 3, 2000, kind="stream", max=1000)
    assert worker.answer(call)["error"]["type"] == "MessageTooLarge"


@BOTH
def test_cancel_is_raised_inside_a_generator_that_waits(worker, lane):
    call = worker.start(shapes.stream_that_waits, kind="stream", lane=lane)
    items(worker, call, 1)
    worker.send({"type": "cancel", "id": call})
    assert worker.answer(call)["error"]["cancelled"] is True
    assert worker.call(shapes.what_was_seen) == ["cancelled"]


def test_cancel_is_raised_inside_a_generator_that_has_no_credit(worker):
    call = worker.start(shapes.stream_for_ever, kind="stream")
    items(worker, call, 64)
    worker.send({"type": "cancel", "id": call})
    assert worker.answer(call)["error"]["cancelled"] is True
    assert worker.call(shapes.what_was_seen) == ["cancelled", "closed"]


def test_arguments_of_a_stream_are_validated(worker):
    error = worker.call(shapes.count, "x", kind="stream")
    assert error["type"] == "ValidationError"
    assert worker.call(shapes.count, kind="stream")["type"] == "TypeError"


# ---- bidi ----


@BOTH
def test_bidi_echoes_and_ends_with_its_input(worker, lane):
    call = worker.start(shapes.echo, kind="bidi", lane=lane, times=2)
    feed(worker, call, 1, "2", lane=lane)
    assert items(worker, call, 4) == [1, 1, 2, 2]
    feed(worker, call, 3, lane=lane)
    worker.send({"type": "bidi_end_in", "id": call}, lane)
    assert items(worker, call, 2) == [3, 3]
    assert worker.answer(call)["type"] == "stream_end"


def test_bidi_input_in_the_same_segment_as_its_start_is_not_lost(worker):
    import struct

    import msgpack

    worker.call(plain.aadd, 1)
    data = b""
    for frame in (
        {"type": "call", "id": 99, "kind": "bidi", "target": "shapes::echo_any"},
        {"type": "bidi_in", "id": 99, "item": {"a": [1]}},
        {"type": "bidi_in", "id": 99, "item": None},
        {"type": "bidi_end_in", "id": 99},
    ):
        body = msgpack.packb(frame)
        data += struct.pack("<I", len(body)) + body
    worker.send_raw(data)
    assert items(worker, 99, 2) == [{"a": [1]}, None]
    assert worker.answer(99)["type"] == "stream_end"


def test_bidi_function_that_stops_early_ends_the_call(worker):
    call = worker.start(shapes.take, kind="bidi", n=2)
    feed(worker, call, *range(10))
    assert items(worker, call, 2) == [0, 1]
    assert worker.answer(call)["type"] == "stream_end"
    feed(worker, call, 11)
    worker.send({"type": "bidi_end_in", "id": call})
    assert worker.silent(0.05)


@pytest.mark.parametrize("lane", [LOOP, THREAD])
def test_bad_item_of_bidi_is_one_error_and_closes_the_generator(worker, lane):
    call = worker.start(shapes.echo, kind="bidi", lane=lane)
    feed(worker, call, 1, lane=lane)
    assert items(worker, call, 1) == [1]
    feed(worker, call, "x", 2, 3, lane=lane)
    error = worker.answer(call)["error"]
    assert error["type"] == "ValidationError"
    assert "valid integer" in error["message"]
    assert worker.silent(0.1)
    seen_at_last(worker, "closed")


def refused_in_order(worker, call):
    """Items up to the error, then nothing more; the values, and the type of the error."""
    values = []
    while (frame := worker.recv(id=call))["type"] == "stream_item":
        values.append(frame["value"])
    assert worker.silent(0.1)
    return values, frame["error"]["type"]


@BOTH
@pytest.mark.parametrize("fn", [shapes.echo, shapes.echo_slowly, shapes.echo_from_a_task])
def test_items_before_a_bad_one_are_answered_first(worker, fn, lane):
    call = worker.start(fn, kind="bidi", lane=lane)
    feed(worker, call, 1, 2, "x", 3, lane=lane)
    worker.send({"type": "bidi_end_in", "id": call}, lane)
    assert refused_in_order(worker, call) == ([1, 2], "ValidationError")
    seen_at_last(worker, "closed")


def test_items_before_a_bad_one_wait_for_credit_before_the_error(worker):
    call = worker.start(shapes.echo, kind="bidi", times=40)
    feed(worker, call, 1, 2, "x")
    assert items(worker, call, 64) == [1] * 40 + [2] * 24
    assert worker.silent(0.1)
    credit(worker, call, 100)
    assert refused_in_order(worker, call) == ([2] * 16, "ValidationError")


def test_item_that_cannot_be_unpacked_comes_in_its_turn(worker):
    call = worker.start(shapes.echo_any, kind="bidi")
    feed(worker, call, 1, {(1,): "a list is no key"}, 2)
    assert refused_in_order(worker, call) == ([1], "ValueError")


def test_bad_item_that_the_function_never_takes_is_no_error(worker):
    call = worker.start(shapes.take, kind="bidi", n=2)
    feed(worker, call, 1, 2, "x")
    assert items(worker, call, 2) == [1, 2]
    assert worker.answer(call)["type"] == "stream_end"


def test_function_that_goes_on_after_a_bad_item_sends_nothing_more(worker):
    call = worker.start(shapes.echo_stubbornly, kind="bidi")
    feed(worker, call, 1, "x", 2)
    assert refused_in_order(worker, call) == ([1], "ValidationError")
    assert seen_at_last(worker, "closed") == ["cancelled", "closed"]


def test_item_type_without_a_schema_is_an_error_not_a_hang(worker):
    call = worker.start(shapes.no_schema, kind="bidi")
    feed(worker, call, 1)
    assert worker.answer(call)["error"]["type"] == "PydanticSchemaGenerationError"


def test_input_credit_follows_what_the_function_takes(worker):
    call = worker.start(shapes.echo, kind="bidi")
    credit(worker, call, 1 << 30)
    feed(worker, call, *range(31))
    items(worker, call, 31)
    assert worker.silent(0.05)
    feed(worker, call, 31)
    grant = worker.recv(type="credit", id=call)
    assert (grant["n"], grant["bytes"] >= 49152) == (32 + 64, True)


def test_input_credit_is_not_granted_while_the_function_takes_nothing(worker):
    call = worker.start(shapes.ignore_input, kind="bidi")
    items(worker, call, 1)
    feed(worker, call, *[b"x" * 1000] * 64)
    assert worker.silent(0.1)
    worker.send({"type": "cancel", "id": call})
    assert worker.answer(call)["error"]["cancelled"] is True


def test_input_credit_counts_bytes_too(worker):
    call = worker.start(shapes.echo_any, kind="bidi")
    feed(worker, call, b"x" * 40000)
    grant = worker.recv(type="credit", id=call)
    assert grant["n"] == 65
    assert 40000 + 49152 <= grant["bytes"] <= 40010 + 49152


@BOTH
def test_cancel_is_raised_inside_a_bidi_function(worker, lane):
    call = worker.start(shapes.echo, kind="bidi", lane=lane)
    feed(worker, call, 1, lane=lane)
    items(worker, call, 1)
    worker.send({"type": "cancel", "id": call})
    assert worker.answer(call)["error"]["cancelled"] is True
    assert worker.call(shapes.what_was_seen) == ["cancelled", "closed"]


def test_bidi_arguments_by_position_skip_the_channel(worker):
    call = worker.start("shapes::echo", 3, kind="bidi", flags=OURS)
    feed(worker, call, 7)
    assert items(worker, call, 3) == [7, 7, 7]
    assert worker.call(shapes.echo, kind="bidi", times="x")["type"] == "ValidationError"
    assert worker.call(shapes.echo, kind="bidi", nothing=1)["type"] == "TypeError"
