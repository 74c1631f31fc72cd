"""The memory of ten thousand streams with slow readers, and of many calls in a row.

The tests use the real worker, because most of a stream's memory is there. AGX_STREAMS and
AGX_SOAK_CALLS set the numbers; a soak of 1,000,000 calls takes minutes.
"""

import os
import time

import pytest
from agxtest.server import rss_kib, wait_for
from agxtest.wire import Session
from conftest import python_options

STREAMS = int(os.environ.get("AGX_STREAMS", "10000"))
CALLS = int(os.environ.get("AGX_SOAK_CALLS", "20000"))
BATCH = 2000  # calls on their way at a time
KIB_A_STREAM = 64


def memory(server):
    return rss_kib(server.pid) + rss_kib(server.worker_pid())


def at_rest(server):
    """Memory when it has stopped growing."""
    sizes = [0, memory(server)]
    while sizes[-1] - sizes[-2] > 256:
        time.sleep(1)
        sizes.append(memory(server))
    return sizes[-1]


@pytest.mark.deadline(300)
def test_streams_with_slow_readers_take_little_each(serve):
    """Each has a window full of items on its way that nobody takes."""
    server = serve(*python_options())
    with Session(server) as s:
        s.call("compat_targets::add", 1)
        before = memory(server)
        calls = {
            s.start("compat_targets::pieces", 1000, 1000, kind="stream"): 0 for _ in range(STREAMS)
        }
        wait_for(lambda: server.health()["calls"] == STREAMS, "all streams run", 120)
        grown = at_rest(server) - before  # nobody reads
        print(f"{STREAMS} streams: {grown / STREAMS:.1f} KiB each")
        assert grown / STREAMS <= KIB_A_STREAM
        for _ in range(5 * STREAMS):  # each of them gets on
            name, payload = s.event()
            assert name == "stream:item" and payload["seq"] == calls[payload["call_id"]] + 1
            calls[payload["call_id"]] += 1
    server.stop()


@pytest.mark.deadline(3600)
def test_many_calls_leave_nothing_behind(serve):
    server = serve(*python_options())
    with Session(server) as s:
        run_calls(s, BATCH * 5)
        before = rss_kib(server.pid), rss_kib(server.worker_pid())
        descriptors = server.descriptors()
        begin = time.monotonic()
        run_calls(s, CALLS)
        print(f"{CALLS / (time.monotonic() - begin):.0f} calls/s")
        after = rss_kib(server.pid), rss_kib(server.worker_pid())
        assert server.health()["calls"] == 0
        server.settle_descriptors(descriptors)
    print(f"server {before[0]} to {after[0]} KiB, worker {before[1]} to {after[1]} KiB")
    assert after[0] - before[0] < 1024 and after[1] - before[1] < 2048


def run_calls(s, n):
    """All shapes, in batches, acknowledged."""
    for first in range(0, n, BATCH):
        count = min(BATCH, n - first)
        open_calls = set()
        for i in range(first, first + count):
            if i % 10 == 0:
                open_calls.add(s.start("compat_targets::count", 3, kind="stream"))
            elif i % 10 == 1:
                call = s.start("compat_targets::running_sum", kind="bidi")
                s.emit("bidi:in", call_id=call, item=1, seq=1)
                s.emit("bidi:end_in", call_id=call, seq=2)
                open_calls.add(call)
            elif i % 10 == 2:
                open_calls.add(s.start("compat_targets::fail", "x"))
            else:
                open_calls.add(s.start("compat_targets::add", i))
        acks = []
        while open_calls:
            name, payload = s.event()
            if not name.endswith((":item", ":out", "credit")):
                open_calls.remove(payload["call_id"])
                acks += [payload["call_id"], payload["seq"]]
        s.ack(*acks)
