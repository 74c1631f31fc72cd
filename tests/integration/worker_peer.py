"""The server's side of a worker, for tests: drives a real worker process on two socketpairs."""

import collections
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import msgpack

PACKAGE = Path(os.environ["AGENTIX_PACKAGE"]).absolute()
TARGETS = Path(__file__).resolve().parent / "targets"
LOOP, THREAD = 0, 1
# A limit only ends a hang: a busy machine takes long.
TIMEOUT_S = 60
OURS = 3  # flags of our own client: integer keys and one-byte dtypes


def pickled(fn):
    return pickle.dumps(fn)


class Gone(Exception):
    """The worker has closed its lanes."""


class WorkerPeer:
    """One worker process. Frames are dicts; `recv` returns them in the order of arrival."""

    def __init__(
        self, python=sys.executable, path=TARGETS, cwd="/", env=None, ready=True, package=PACKAGE
    ):
        pairs = [socket.socketpair() for _ in range(2)]
        self.socks = [ours for ours, _ in pairs]
        theirs = [their for _, their in pairs]
        boot = package / "agentix/runtime/server/_boot.py"
        fds = ",".join(str(s.fileno()) for s in theirs)
        environ = {"PATH": os.environ["PATH"], "AGENTIX_WORKER_FDS": fds, "AGENTIX_PATH": str(path)}
        self.process = subprocess.Popen(
            [python, "-I", str(boot)],
            env=environ | (env or {}),
            cwd=cwd,
            pass_fds=[s.fileno() for s in theirs],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        for sock in theirs:
            sock.close()
        self.buffers = [b"", b""]
        self.frames = collections.deque()
        self.last_id = 0
        self.hints = {}
        if ready:
            self.ready = self.recv()
            assert self.ready["type"] == "ready", self.ready

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for sock in self.socks:
            sock.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def stderr(self):
        """The worker's standard error up to its end."""
        try:
            return self.process.communicate(timeout=TIMEOUT_S)[1].decode(errors="replace")
        except (subprocess.TimeoutExpired, ValueError):
            return "the worker has closed a lane and lives on"

    def send_raw(self, data, lane=LOOP):
        """Writes, and reads while the worker does not. The worker may wait for us to read, because
        the real server never waits to write."""
        sock, left = self.socks[lane], memoryview(data)
        while left:
            try:
                left = left[sock.send(left, socket.MSG_DONTWAIT) :]
            except BlockingIOError:
                select.select(self.socks, [sock], [])
                self.pump(0)

    def send(self, frame, lane=LOOP):
        body = msgpack.packb(frame)
        self.send_raw(struct.pack("<I", len(body)) + body, lane)

    def _cut(self, lane):
        """Splits the bytes of a lane into complete frames."""
        data, at = memoryview(self.buffers[lane]), 0
        while len(data) - at >= 4:
            size = struct.unpack_from("<I", data, at)[0]
            if len(data) - at < 4 + size:
                break
            frame = msgpack.unpackb(data[at + 4 : at + 4 + size], strict_map_key=False)
            at += 4 + size
            frame["_lane"] = lane
            if frame["type"] == "lane":
                self.hints.setdefault(frame["callable"], []).append(frame["lane"])
            else:
                self.frames.append(frame)
        self.buffers[lane] = bytes(data[at:])

    def pump(self, timeout):
        """Reads what arrives within that time; raises Gone at the end of either lane."""
        readable, _, _ = select.select(self.socks, [], [], timeout)
        ended = 0
        for sock in readable:
            lane = self.socks.index(sock)
            try:
                data = sock.recv(1 << 20)
            except ConnectionResetError:
                data = b""
            ended += not data
            self.buffers[lane] += data
            self._cut(lane)
        if ended and ended == len(readable):  # what the other lane still holds comes first
            raise Gone(self.stderr())
        return bool(readable)

    def recv(self, timeout=TIMEOUT_S, **want):
        """The next frame (with these fields); others stay in order."""
        until = time.monotonic() + timeout
        while True:
            for frame in self.frames:
                if all(frame.get(key) == value for key, value in want.items()):
                    self.frames.remove(frame)
                    return frame
            left = until - time.monotonic()
            assert left > 0, f"no frame with {want} in {timeout} s; have {list(self.frames)[:5]}"
            self.pump(left)

    def silent(self, seconds):
        """Whether nothing arrives for so long."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.pump(left)
        return not self.frames

    def start(self, target, *args, kind="unary", lane=LOOP, flags=0, max=1 << 28, **kwargs):
        """Sends a call and returns its id. `target` is text, a pickle, or something to pickle."""
        self.last_id += 1
        named = "target" if isinstance(target, str) else "callable_payload"
        payload = target if isinstance(target, (str, bytes)) else pickled(target)
        frame = {"type": "call", "id": self.last_id, "kind": kind, "flags": flags, "max": max}
        frame |= {"call_id": f"c{self.last_id}", named: payload, "display_name": "t::f"}
        frame |= {"shape": kind, "args": args, "kwargs": kwargs}
        self.send(frame, lane)
        return self.last_id

    def answer(self, call, timeout=TIMEOUT_S):
        """The terminal frame of a call."""
        while True:
            frame = self.recv(timeout, id=call)
            if frame["type"] in ("result", "error", "stream_end"):
                return frame

    def call(self, target, *args, **options):
        """The result, or the error's map."""
        frame = self.answer(self.start(target, *args, **options))
        return frame["value"] if frame["type"] == "result" else frame["error"]

    def exit_code(self, timeout=TIMEOUT_S):
        """Waits for the end of the process."""
        until = time.monotonic() + timeout
        while self.process.poll() is None and time.monotonic() < until:
            try:
                self.pump(0.02)
            except Gone:
                time.sleep(0.01)
        return self.process.poll()
