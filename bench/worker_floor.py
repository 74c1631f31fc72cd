"""Shared by the worker figures: a worker that is called over bare socketpairs, without a server.

A frame is prepared once; only its call's number changes. So the figures measure only the worker.
"""

import contextlib
import os
import select
import socket
import statistics
import struct
import subprocess
import time

from measure import BenchError

LOOP, THREAD = 0, 1
WINDOW = 64
TARGETS = """
def add(a: int, b: int) -> int:
    return a + b

async def aadd(a: int, b: int) -> int:
    return a + b
"""


def text(value):
    return bytes([0xA0 + len(value)]) + value.encode()


class Floor:
    """One worker, and one callable in it that is called repeatedly."""

    def __init__(self, bench, name, lane):
        self.start(bench, name)
        pairs = self.pairs
        hello = pairs[LOOP][0].recv(4096)
        if b"ready" not in hello:
            raise BenchError("the worker did not start")
        # The first call loads the callable; both lanes may carry its answer and a hint of its lane.
        pairs[LOOP][0].sendall(self.frame())
        time.sleep(0.2)
        for sock, _ in pairs:
            self.drop(sock)
            sock.settimeout(10)
        self.sock = pairs[lane][0]
        self.sock.sendall(self.frame())
        self.answer_size = len(self.sock.recv(4096))

    def start(self, bench, name):
        package = bench.program("python/agentix/_worker.abi3.so").parent.parent
        self.folder = bench.build / "bench" / "worker_floor"
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "floor_targets.py").write_text(TARGETS)
        pairs = [socket.socketpair() for _ in range(2)]
        theirs = [their.fileno() for _, their in pairs]
        self.process = subprocess.Popen(
            ["/usr/bin/python3", "-I", package / "agentix/runtime/server/_boot.py"],
            env={
                "PATH": os.environ["PATH"],
                "AGENTIX_WORKER_FDS": ",".join(map(str, theirs)),
                "AGENTIX_PATH": str(self.folder),
            },
            pass_fds=theirs,
            stdin=subprocess.DEVNULL,
        )
        for _, their in pairs:
            their.close()
        self.pairs = pairs
        self.target = f"floor_targets::{name}"
        self.next_id = 1 << 32  # from here on all numbers have the same length
        bench.defer(self.stop)

    def stop(self):
        """Closes the sockets, which ends the worker."""
        for sock, _ in self.pairs:
            sock.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    @staticmethod
    def drop(sock):
        """Discards the bytes that have arrived so far."""
        with contextlib.suppress(BlockingIOError):
            sock.recv(1 << 16, socket.MSG_DONTWAIT)

    def frame(self):
        number = self.next_id
        self.next_id += 1
        body = b"\x89" + text("type") + text("call") + text("id") + b"\xcf"
        body += struct.pack(">Q", number) + text("kind") + text("unary") + text("flags") + b"\x03"
        body += text("max") + b"\xce\x10\x00\x00\x00" + text("target") + text(self.target)
        body += text("shape") + text("unary")
        body += text("args") + b"\x92\x01\x02" + text("kwargs") + b"\x80"
        return struct.pack("<I", len(body)) + body

    def block(self, n):
        """Sends `n` calls in one piece and waits for all answers."""
        self.sock.sendall(b"".join(self.frame() for _ in range(n)))
        left = self.answer_size * n
        while left > 0:
            data = self.sock.recv(1 << 16)
            if not data:
                raise BenchError("the worker has closed its socket")
            left -= len(data)

    def p50_us(self, seconds):
        """The median of calls, one after the other, in microseconds."""
        took, until = [], time.perf_counter() + seconds
        while (start := time.perf_counter()) < until:
            self.block(1)
            took.append(time.perf_counter() - start)
        return statistics.median(took) * 1e6

    def rate(self, seconds):
        """Calls per second with 64 at once."""
        n, start = 0, time.perf_counter()
        while (now := time.perf_counter()) < start + seconds:
            self.block(WINDOW)
            n += WINDOW
        return n / (now - start)


def first_result_ms(bench, name):
    """The time from the start of a worker to the first result of a call that waits for it."""
    floor, start = Floor.__new__(Floor), time.perf_counter()
    floor.start(bench, name)
    sockets = [ours for ours, _ in floor.pairs]
    sockets[LOOP].sendall(floor.frame())
    while True:
        ready, _, _ = select.select(sockets, [], [], 10)
        if not ready:
            raise BenchError("the worker did not answer")
        if any(b"result" in sock.recv(4096) for sock in ready):
            break
    taken = time.perf_counter() - start
    floor.stop()
    return taken * 1000
