"""usage: fake_worker.py MODE: a scripted worker, which can do what a real worker never does.

MODE chooses how it boots: ready; never (does not become ready); late (after half a second); exit3
(exits before it is ready); error (boot_error); error_hangs (the same, without exit); garbage (sends
bytes that are not a frame).

The target of a call chooses its behaviour; see the functions below.
"""

import contextlib
import os
import select
import signal
import socket
import sys
import time

import msgpack
import tracer

ITEMS, BYTES = 64, 49152  # the initial credit of a call


class Call:
    """A running call that sends items as its credit allows."""

    def __init__(self, lane, frame, items, at_end):
        self.lane = lane
        self.id = frame["id"]
        self.items = items
        self.at_end = at_end
        self.n, self.size = ITEMS, BYTES

    def pump(self):
        while self.items and self.n > 0 and self.size > 0:
            value = self.items.pop(0)
            self.n -= 1
            self.size -= len(msgpack.packb(value))
            send(self.lane, type="stream_item", id=self.id, value=value)
        if not self.items and self.at_end:
            calls.pop(self.id, None)
            self.at_end()


calls = {}
bidis = {}
taken = {}
seen = []
mode = sys.argv[1]
lanes = [socket.socket(fileno=int(n)) for n in os.environ["AGENTIX_WORKER_FDS"].split(",")]
held = {lane: b"" for lane in lanes}


def send(lane, /, **frame):
    data = msgpack.packb(frame)
    lane.sendall(len(data).to_bytes(4, "little") + data)


def error(lane, number, name, message="", cancelled=False):
    body = {"type": name, "message": message, "traceback": None, "cancelled": cancelled}
    send(lane, type="error", id=number, error=body)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


# -- targets; each gets the lane, the frame and the arguments


def echo(lane, frame, *args):
    send(lane, type="result", id=frame["id"], value=list(args))


def hang(lane, frame):
    """Ends only on a cancel."""


def never(lane, frame):
    """Does not end on a cancel either."""


def size(lane, frame, n):
    send(lane, type="result", id=frame["id"], value=b"x" * n)


def fields(lane, frame):
    """Returns the server's call frame."""
    value = {k: frame[k] for k in ("type", "kind", "flags", "max", "call_id")}
    send(lane, type="result", id=frame["id"], value=value)


def frames(lane, frame, wanted):
    """Returns the number of received frames of a type."""
    value = sum(1 for kind in seen if kind == wanted)
    send(lane, type="result", id=frame["id"], value=value)


def surroundings(lane, frame):
    fds = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            fds[name] = os.readlink(f"/proc/self/fd/{name}")
    value = {"env": dict(os.environ), "fds": fds, "sid": os.getsid(0), "pid": os.getpid()}
    send(lane, type="result", id=frame["id"], value=value)


def traces_server(lane, frame):
    """Tries to access the server's process; returns the ways that succeeded."""
    send(lane, type="result", id=frame["id"], value=tracer.attempts(os.getppid()))


def end3(lane, frame):
    os._exit(3)


def killed(lane, frame):
    die()


def answer_and_die(lane, frame, n, gate):
    """Answers once the file `gate` exists, and dies."""
    while not os.path.exists(gate):
        time.sleep(0.005)
    send(lane, type="result", id=frame["id"], value=b"x" * n)
    os._exit(0)


def child_then_die(lane, frame):
    """Leaves a child that keeps all descriptors open."""
    if os.fork() == 0:
        time.sleep(600)
        os._exit(0)
    die()


def close_lanes(lane, frame):
    """Closes its sockets and continues to run."""
    for each in lanes:
        each.close()
    time.sleep(600)


def count(lane, frame, n, item_size=0):
    number = frame["id"]
    items = [b"x" * item_size if item_size else i for i in range(n)]
    calls[number] = Call(lane, frame, items, lambda: send(lane, type="stream_end", id=number))
    calls[number].pump()


def count_and_die(lane, frame, n):
    calls[frame["id"]] = Call(lane, frame, list(range(n)), die)
    calls[frame["id"]].pump()


def count_and_hang(lane, frame, n):
    calls[frame["id"]] = Call(lane, frame, list(range(n)), None)
    calls[frame["id"]].pump()


def flood(lane, frame, n):
    """Sends more than its credit allows."""
    for i in range(n):
        send(lane, type="stream_item", id=frame["id"], value=i)


def bidi_echo(lane, frame):
    bidis[frame["id"]] = "echo"


def bidi_die(lane, frame):
    """Dies at its first input."""
    bidis[frame["id"]] = "die"


def bidi_deaf(lane, frame):
    """Reads its input from the socket but grants no credit."""
    bidis[frame["id"]] = "deaf"


def twice(lane, frame):
    for _ in range(2):
        send(lane, type="result", id=frame["id"], value=1)


def item_of_unary(lane, frame):
    send(lane, type="stream_item", id=frame["id"], value=1)


def unknown_call(lane, frame):
    send(lane, type="result", id=frame["id"] + 1000, value=1)


def unknown_type(lane, frame):
    send(lane, type="news", id=frame["id"])
    send(lane, type="result", id=frame["id"], value="ok")


def no_map(lane, frame):
    lane.sendall(b"\x01\x00\x00\x00\x01")


def half_and_die(lane, frame):
    lane.sendall(b"\x40\x00\x00\x00\x81\xa4type")
    die()


def too_long(lane, frame):
    lane.sendall(b"\xff\xff\xff\xff" + bytes(64))
    time.sleep(600)


def byte_by_byte(lane, frame):
    data = msgpack.packb({"type": "result", "id": frame["id"], "value": "slow"})
    for byte in len(data).to_bytes(4, "little") + data:
        lane.sendall(bytes([byte]))
        time.sleep(0.001)


def prints(lane, frame, text, fd, times):
    """Writes to stdout or stderr, and answers afterwards."""
    data = text if isinstance(text, bytes) else text.encode()
    for _ in range(times):
        left = data
        while left:
            left = left[os.write(fd, left) :]
    send(lane, type="result", id=frame["id"], value=None)


def other_lane(lane, frame):
    """Answers on the other lane, with a hint to use that lane for the next call."""
    other = lanes[1 - lanes.index(lane)]
    send(other, type="lane", callable=frame["target"], lane=1 - lanes.index(lane))
    send(other, type="result", id=frame["id"], value=lanes.index(lane))


def stop_reading(lane, frame, seconds):
    send(lane, type="result", id=frame["id"], value=None)
    time.sleep(seconds)


# -- frames


def on_call(lane, frame):
    target = globals().get(frame.get("target", "").removeprefix("fake::"))
    if target is None:
        error(lane, frame["id"], "ModuleNotFoundError", str(frame.get("target")))
    elif target is not never:
        if target is hang:
            bidis.setdefault(frame["id"], "hang")
        target(lane, frame, *(frame.get("args") or []))


def on_input(lane, frame):
    number, kind = frame["id"], bidis.get(frame["id"])
    if kind == "die":
        die()
    if kind == "echo":
        n, total = taken.get(number, (0, 0))
        n, total = n + 1, total + len(msgpack.packb(frame["item"]))
        taken[number] = n, total
        if n % 16 == 0:
            send(lane, type="credit", id=number, n=n + ITEMS, bytes=total + BYTES)
        if number not in calls:
            calls[number] = Call(lane, frame, [], None)
        calls[number].items.append(frame["item"])
        calls[number].pump()


def on_input_end(lane, frame):
    number = frame["id"]
    if bidis.get(number) != "echo":
        return
    if number not in calls:
        calls[number] = Call(lane, frame, [], None)
    calls[number].at_end = lambda: send(lane, type="stream_end", id=number)
    calls[number].pump()


def on_credit(lane, frame):
    call = calls.get(frame["id"])
    if call:
        sent_n, sent_size = call.__dict__.setdefault("base", (ITEMS, BYTES))
        call.n += frame["n"] - sent_n
        call.size += frame["bytes"] - sent_size
        call.base = (frame["n"], frame["bytes"])
        call.pump()


def on_cancel(lane, frame):
    number = frame["id"]
    if bidis.pop(number, None) or calls.pop(number, None):
        calls.pop(number, None)
        error(lane, number, "Cancelled", "remote call cancelled", True)


def on_shutdown(lane, frame):
    os._exit(0)


HANDLERS = {
    "call": on_call,
    "bidi_in": on_input,
    "bidi_end_in": on_input_end,
    "credit": on_credit,
    "cancel": on_cancel,
    "shutdown": on_shutdown,
}


def on_readable(lane):
    data = lane.recv(1 << 20)
    if not data:
        os._exit(0)
    data = held[lane] + data
    while len(data) >= 4:
        length = int.from_bytes(data[:4], "little")
        if len(data) < 4 + length:
            break
        frame = msgpack.unpackb(data[4 : 4 + length], strict_map_key=False)
        data = data[4 + length :]
        held[lane] = data
        seen.append(frame["type"])
        HANDLERS[frame["type"]](lane, frame)
    held[lane] = data


def boot():
    if mode == "never":
        time.sleep(600)
    if mode == "late":
        time.sleep(0.5)
    if mode == "exit3":
        os._exit(3)
    if mode in ("error", "error_hangs"):
        body = {"type": "ImportError", "message": "no pydantic: " + "é" * 600}
        send(lanes[0], type="boot_error", error=body)
        if mode == "error_hangs":
            time.sleep(600)
        os._exit(1)
    if mode == "garbage":
        lanes[0].sendall(b"Traceback (most recent call last):\n")
        time.sleep(600)
    send(lanes[0], type="ready", proto=1, name="fake")


def main():
    boot()
    while True:
        for lane in select.select(lanes, [], [])[0]:
            on_readable(lane)


if __name__ == "__main__":
    main()
