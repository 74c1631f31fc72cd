"""The Python worker under every installed interpreter: one build of the extension serves all.

The run prints the interpreters that it found. They have no packages, so no test needs pydantic.
"""

import signal
import sys

import interpreters
import pytest
import worker_peer
from worker_peer import LOOP, THREAD, WorkerPeer

sys.path.insert(0, str(worker_peer.TARGETS))


@pytest.fixture(params=interpreters.FOUND)
def worker(request):
    with WorkerPeer(python=request.param) as worker:
        yield worker


def test_calls_of_each_shape_work(worker):
    for lane in (LOOP, THREAD):
        assert worker.call("plain::add", 1, lane=lane) == 3
        assert worker.call("plain::aadd", 1, lane=lane) == 3
        assert worker.call("shapes::later", 5, lane=lane) == 5
        call = worker.start("shapes::count", 5, kind="stream", lane=lane)
        values = [worker.recv(id=call, type="stream_item")["value"] for _ in range(5)]
        assert values == list(range(5))
        assert worker.answer(call)["type"] == "stream_end"
        call = worker.start("shapes::echo", kind="bidi", lane=lane)
        worker.send({"type": "bidi_in", "id": call, "item": 1}, lane)
        assert worker.recv(id=call, type="stream_item")["value"] == 1
        worker.send({"type": "bidi_end_in", "id": call}, lane)
        assert worker.answer(call)["type"] == "stream_end"


def test_coroutine_has_a_task_and_its_own_context(worker):
    assert worker.call("shapes::loop_facts") == [True, True]
    for fn in ("shapes::set_variable", "shapes::aset_variable"):
        assert [worker.call(fn, 1) for _ in range(3)] == ["unset"] * 3


def test_failures_and_cancels_are_answered(worker):
    assert worker.call("shapes::afail", "x")["type"] == "LookupError"
    assert worker.call("shapes::araise_cancelled")["type"] == "CancelledError"
    for name in ("wait_for_ever", "spin_for_ever", "survive_cancel"):
        call = worker.start(f"shapes::{name}")
        worker.call("plain::aadd", 1)
        worker.send({"type": "cancel", "id": call})
        assert worker.answer(call)["type"] in ("result", "error")


@pytest.mark.parametrize("name", ["leave", "aleave", "later_leave"])
def test_sys_exit_ends_the_process(worker, name):
    worker.start(f"shapes::{name}", 5)
    assert worker.exit_code() == 5


def test_interrupt_and_shutdown_end_the_process(worker):
    worker.start("shapes::wait_for_ever")
    worker.send({"type": "shutdown", "grace_ms": 2000})
    assert worker.exit_code() == 0
    with WorkerPeer(python=worker.process.args[0]) as other:
        other.start("shapes::interrupt")
        assert other.exit_code() == -signal.SIGINT
