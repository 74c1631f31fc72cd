"""The Python worker against arbitrary frames: it answers, ignores them, or exits; it never hangs.

AGX_FUZZ_SECONDS (4) sets the time, AGX_FUZZ_SEED the frames. A failure prints its seed.
"""

import os
import random
import struct
import time

import msgpack
import pytest
from worker_peer import Gone, WorkerPeer

SECONDS = float(os.environ.get("AGX_FUZZ_SECONDS", "4"))
LEAST = 100  # frames, even if the time is over before the first worker is ready
SEED = int(os.environ.get("AGX_FUZZ_SEED", time.time_ns() % 10**9))
# Exit statuses that a worker chooses: not by a signal, and not by an exception of its own.
CLEAN = (0,)

TARGETS = [
    "plain::add",
    "plain::aadd",
    "shapes::count",
    "shapes::echo",
    "shapes::plain",
    "x::y",
    "",
]
VALUES = [None, 0, 1, -1, 2**64 - 1, 1.5, "", "x", b"", b"y" * 300, [], [1], {}, {"a": 1}, {1: 2}]
KEYS = ["type", "id", "kind", "flags", "max", "target", "callable_payload", "shape", "args"]
KEYS += ["kwargs", "item", "n", "bytes", "display_name", "call_id"]
TYPES = ["call", "call", "call", "bidi_in", "bidi_end_in", "credit", "cancel", "other"]


def any_frame(rng, ids):
    """A frame that resembles a valid one, but may have invalid fields."""
    number = rng.choice([ids["next"], rng.randrange(1, ids["next"] + 1)])
    ids["next"] += 1
    kind = rng.choice(["unary", "stream", "bidi"])
    frame = {"type": rng.choice(TYPES), "id": number, "kind": kind}
    frame |= {"target": rng.choice(TARGETS), "args": [rng.choice(VALUES)], "kwargs": {}}
    frame |= {"item": rng.choice(VALUES), "n": rng.choice([0, 5, 100]), "bytes": 1 << 20}
    for _ in range(rng.choice([0, 0, 1, 2])):
        frame[rng.choice(KEYS)] = rng.choice(VALUES)
    for _ in range(rng.choice([0, 0, 1])):
        frame.pop(rng.choice(list(frame)), None)
    return frame


def mutated(rng, body):
    body = bytearray(body)
    for _ in range(rng.randrange(1, 4)):
        body[rng.randrange(len(body))] = rng.randrange(256)
    return bytes(body)


def framed(body):
    return struct.pack("<I", len(body)) + body


def drain(worker):
    while worker.pump(0):
        worker.frames.clear()


def ends_by_itself(worker):
    """The worker has closed a lane: it must end, and report the reason if it is a failure."""
    code = worker.exit_code()
    assert code in CLEAN, f"exit code {code}: {worker.stderr()}"


def alive(worker, number):
    """Checks that the worker still answers calls."""
    worker.last_id = number
    worker.frames.clear()
    call = worker.start("plain::aadd", 1)
    assert worker.answer(call)["value"] == 3


@pytest.mark.parametrize("share", [0.0, 0.02], ids=["sense", "mutations"])
def test_frames_of_any_content_neither_hang_nor_crash_the_worker(share):
    rng = random.Random(SEED)
    until, sent, ended = time.monotonic() + SECONDS, 0, 0
    while time.monotonic() < until or sent <= LEAST:
        ids = {"next": 1}
        with WorkerPeer() as worker:
            try:
                for _ in range(2000):
                    body = msgpack.packb(any_frame(rng, ids))
                    if rng.random() < share:
                        body = mutated(rng, body)
                    worker.send_raw(framed(body), rng.randrange(2))
                    sent += 1
                    drain(worker)
                    if time.monotonic() > until and sent > LEAST:
                        break
                alive(worker, 10**9)
            except (Gone, BrokenPipeError, ConnectionResetError):
                assert share > 0, f"seed {SEED}: the worker ended; {worker.stderr()}"
                ended += 1
                ends_by_itself(worker)
    print(f"{sent} frames, {ended} workers ended, seed {SEED}")
    assert sent > LEAST


def test_every_call_gets_exactly_one_terminal_frame():
    rng = random.Random(SEED)
    terminals = {"result", "error", "stream_end"}
    with WorkerPeer() as worker:
        open_calls, over = set(), set()
        for number in range(1, 1500):
            worker.last_id = number - 1
            target, kind = rng.choice(
                [("plain::add", "unary"), ("shapes::later", "unary"), ("shapes::count", "stream"),
                 ("shapes::echo", "bidi"), ("plain::add", "bidi"), ("shapes::plain", "stream")]
            )  # fmt: skip
            args = [rng.choice([1, "x", None])] if kind != "bidi" else []
            open_calls.add(worker.start(target, *args, kind=kind, lane=rng.randrange(2)))
            if kind == "bidi":
                end = {"type": rng.choice(["bidi_end_in", "cancel"]), "id": number}
                worker.send(end, 0)
                worker.send({"type": "bidi_end_in", "id": number}, 1)
        while open_calls - over:
            frame = worker.recv()
            if frame["type"] in terminals:
                assert frame["id"] not in over, frame
                over.add(frame["id"])
            else:
                assert frame["id"] not in over, frame
        assert worker.silent(0.1)


@pytest.mark.parametrize(
    "data",
    [b"\xff\xff\xff\xff", framed(b"\x90"), framed(b"\xc1"), framed(b""), b"\x05\0\0\0\x80"],
    ids=["too large", "no map", "no msgpack", "empty", "cut"],
)
@pytest.mark.parametrize("lane", [0, 1])
def test_bytes_that_no_server_sends_end_the_worker_or_are_ignored(data, lane):
    with WorkerPeer() as worker:
        worker.send_raw(data, lane)
        if data == framed(b""):
            alive(worker, 1)
        if data in (framed(b""), b"\x05\0\0\0\x80"):
            for sock in worker.socks:
                sock.close()
        assert worker.process.wait(60) == 0
