"""Ends of the Python worker: by itself, by user code and with the server."""

import signal
import socket
import sys
import time

import pytest
import worker_peer
from worker_peer import LOOP, THREAD, WorkerPeer

sys.path.insert(0, str(worker_peer.TARGETS))

import plain
import shapes

BOTH = pytest.mark.parametrize("lane", [LOOP, THREAD])


@pytest.fixture
def worker():
    with WorkerPeer() as worker:
        yield worker


def wait_until(condition, seconds=60):
    """Whether the condition became true in that time."""
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.002)
    return condition()


def has_started(worker):
    return "started" in worker.call("shapes::what_was_seen")


@BOTH
@pytest.mark.parametrize("fn", [shapes.leave, shapes.aleave, shapes.later_leave])
@pytest.mark.parametrize(("code", "expected"), [(3, 3), (None, 0), ("words", 1)])
def test_sys_exit_ends_the_process_with_its_code(worker, fn, lane, code, expected):
    worker.start(fn, code, lane=lane)
    assert worker.exit_code() == expected


def test_other_ends_of_the_process(worker):
    worker.start(shapes.interrupt)
    assert worker.exit_code() == -signal.SIGINT
    with WorkerPeer() as other:
        other.start(shapes.vanish)
        assert other.exit_code() == 7
    with WorkerPeer() as other:
        other.start(shapes.crash)
        assert other.exit_code() == -signal.SIGSEGV


def test_results_before_an_exit_are_not_lost(worker):
    worker.call(plain.add, 1)
    assert worker.call(shapes.calls_in_flight, lane=THREAD) == 1  # found and prepared, it is quick
    calls = [worker.start(plain.add, i, lane=THREAD) for i in range(50)]
    worker.start(shapes.leave_as_the_last, lane=THREAD)
    for i, call in enumerate(calls):
        assert worker.answer(call)["value"] == i + 2


def frames_of_calls(worker, *calls):
    """The frames that start() would send for these calls, as one piece."""
    sent = []
    worker.send_raw = lambda data, lane: sent.append(data)
    for call in calls:
        worker.start(*call, lane=THREAD)
    del worker.send_raw
    return b"".join(sent)


def drain_with_an_answer_unwritten(worker, place):
    """Fills the thread lane, which the test does not read. Then the worker reads two calls at once:
    one drains the answers, as the worker does before it ends; the answer of the other still waits
    to be sent in a batch. False if that answer waited too long and was written first."""
    worker.call(shapes.drain, str(place), 0.0, lane=THREAD)  # found and prepared, it is quick
    (place / "begun").unlink()
    (place / "done").unlink()
    worker.start(bytes, 170_000, lane=THREAD)
    assert wait_until(lambda: len(worker.socks[THREAD].recv(1 << 20, socket.MSG_PEEK)) > 170_000)
    calls = (bytes, 100_000), (shapes.drain, str(place), 0.5)
    worker.send_raw(frames_of_calls(worker, *calls), THREAD)
    return wait_until((place / "begun").exists, 1)


def test_an_end_does_not_wait_longer_than_it_may_for_a_server_that_reads_nothing(tmp_path):
    for i in range(10):
        place = tmp_path / str(i)
        place.mkdir()
        with WorkerPeer() as worker:
            if drain_with_an_answer_unwritten(worker, place):
                assert wait_until((place / "done").exists)
                return
    raise AssertionError("the answer was always written too soon")


@pytest.mark.parametrize("busy", [None, shapes.spin_for_ever, shapes.wait_for_ever])
def test_shutdown_cancels_what_runs_and_exits_0(worker, busy):
    call = worker.start(busy) if busy else None
    if busy:
        assert wait_until(lambda: has_started(worker))
    worker.send({"type": "shutdown", "grace_ms": 60000})
    if call:
        assert worker.answer(call)["error"]["cancelled"] is True
    assert worker.exit_code() == 0


def test_shutdown_does_not_wait_longer_than_its_grace(worker):
    worker.start(shapes.block, 600)
    worker.call(plain.add, 1)
    start = time.monotonic()
    worker.send({"type": "shutdown", "grace_ms": 200})
    assert worker.exit_code() == 0
    assert 0.15 < time.monotonic() - start < 60


@pytest.mark.parametrize("busy", [None, shapes.spin_for_ever, shapes.wait_for_ever])
def test_end_of_the_lanes_ends_the_worker(worker, busy):
    if busy:
        worker.start(busy)
        assert wait_until(lambda: has_started(worker))
    for sock in worker.socks:
        sock.close()
    assert worker.process.wait(60) == 0
