"""Many calls of all shapes through server and worker, in every build, including sanitizers.

AGX_SOAK_CALLS sets the number. tests/compat/test_streams.py does the same with the Python worker.
"""

import os

import pytest
from agxtest.server import assert_grows_less, rss_kib, wait_for
from agxtest.wire import Client, Session

CALLS = int(os.environ.get("AGX_SOAK_CALLS", "20000"))
BATCH = 1000  # calls on their way at a time
GROWTH_KIB = 1024
THREAD_KIB = 48  # a function's thread that has run: its stack, and its share of malloc's caches


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def start(client, i):
    """One call in ten is a stream, a bidi, a failure, or cancelled."""
    if i % 10 == 0:
        return client.start("c:functions::count", 3, kind="stream")
    if i % 10 == 1:
        call = client.start("c:functions::upper", kind="bidi")
        client.emit("bidi:in", call_id=call, item="a", seq=1)
        client.emit("bidi:end_in", call_id=call, seq=2)
        return call
    if i % 10 == 2:
        return client.start("c:functions::fail")
    if i % 10 == 3:
        call = client.start("c:functions::sleep_wait")
        client.emit("cancel", call_id=call)
        return call
    return client.start("c:functions::add", i, 1)


def run_calls(client, n):
    for first in range(0, n, BATCH):
        running = {start(client, i) for i in range(first, min(first + BATCH, n))}
        acks = []
        while running:
            name, payload = client.event()
            if not name.endswith((":item", ":out", "credit")):
                running.remove(payload["call_id"])
                acks += [payload["call_id"], payload.get("seq")]
        if isinstance(client, Session):
            client.ack(*acks)


@pytest.mark.deadline(7200)
@pytest.mark.parametrize("new", [Client, Session])
def test_many_calls_leave_nothing_behind(serve, new):
    """A sanitizer reports leaks at the end, and then the server's exit status is not 0."""
    server = serve("--path", os.environ["TEST_FUNCTIONS"], worker=os.environ["AGENTIX_WORKER"])
    with new(server) as client:
        run_calls(client, 5 * BATCH)
        worker = server.worker_pid()
        before = rss_kib(server.pid), rss_kib(worker), threads(worker)
        descriptors = server.descriptors()
        run_calls(client, CALLS)
        wait_for(lambda: server.health()["calls"] == 0, "the worker has ended what was cancelled")
        assert_grows_less(server.pid, before[0], GROWTH_KIB)
        more_threads = max(0, threads(worker) - before[2])  # at times more calls meet each other
        assert_grows_less(worker, before[1], GROWTH_KIB + THREAD_KIB * more_threads)
        server.settle_descriptors(descriptors)
        assert server.worker_pid() == worker
    server.stop()
    assert "ERROR: " not in server.log()
