"""C functions from the server's side: frames over two socket pairs, with tests/functions.

The test speaks the protocol of docs/design/runtime-protocol.md, section 4. The worker is
agentix-worker, or, if AGENTIX_PACKAGE names the Python package, the Python worker.
"""

import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import time

import msgpack
import pytest

WORKER = os.environ["AGENTIX_WORKER"]
PACKAGE = os.environ.get("AGENTIX_PACKAGE")
COMMAND = [WORKER]
if PACKAGE:
    COMMAND = [sys.executable, "-I", f"{PACKAGE}/agentix/runtime/server/_boot.py"]
FUNCTIONS = os.environ["TEST_FUNCTIONS"]
TIMEOUT_S = 60  # a sanitizer's build on a busy machine
LOOP, THREAD = 0, 1


def alone(test):
    """Marks a test of agentix-worker only; the Python worker runs without it, not as a skip."""
    return None if PACKAGE else test


def unsanitized(test):
    """Marks a test of memory, which does not run under a sanitizer: one keeps freed memory."""
    return None if SANITIZED else test


SANITIZED = os.environ["SANITIZE"] != "none"
WINDOW = 64
TERMINAL = ("result", "error", "stream_end")


class Worker:
    """A running agentix-worker and our ends of its lanes."""

    def __init__(self, path=FUNCTIONS, **environment):
        pairs = [socket.socketpair() for _ in range(2)]
        theirs = [pair[1].fileno() for pair in pairs]
        self.lanes = [pair[0] for pair in pairs]
        self.partial = [b"", b""]
        self.frames = []
        self.last_id = 0
        self.process = subprocess.Popen(
            COMMAND,
            pass_fds=theirs,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={
                **os.environ,
                "AGENTIX_WORKER_FDS": ",".join(map(str, theirs)),
                "AGENTIX_PATH": path,
                **environment,
            },
        )
        for pair in pairs:
            pair[1].close()

    def send(self, frame, lane=LOOP):
        body = msgpack.packb(frame)
        self.send_raw(struct.pack("<I", len(body)) + body, lane)

    def send_raw(self, data, lane):
        """Writes, and reads while the worker does not. The worker may wait for us to read, because
        the real server never waits to write."""
        sock, left = self.lanes[lane], memoryview(data)
        while left:
            try:
                left = left[sock.send(left, socket.MSG_DONTWAIT) :]
            except BlockingIOError:
                if select.select(self.lanes, [sock], [])[0]:
                    self.read()

    def call(self, target, *args, kind="unary", lane=LOOP, flags=3, call_id="c", **kwargs):
        """Sends a call of functions::`target` and returns its id."""
        self.last_id += 1
        frame = {"type": "call", "id": self.last_id, "kind": kind, "flags": flags, "max": 1 << 20}
        frame |= {"call_id": call_id, "display_name": target, "args": args, "kwargs": kwargs}
        frame["target"] = target if ":" in target else f"c:functions::{target}"
        self.send(frame, lane)
        return self.last_id

    def read(self, timeout=TIMEOUT_S):
        """Waits for bytes and splits them into frames; False if the worker has closed its lanes and
        both are empty."""
        ready = select.select(self.lanes, [], [], timeout)[0]
        assert ready, f"nothing in {timeout} s"
        ended = 0
        for lane, sock in enumerate(self.lanes):
            if sock not in ready:
                continue
            data = sock.recv(1 << 20)
            ended += not data
            self.partial[lane] += data
            self.take(lane)
        return ended < len(ready)

    def take(self, lane):
        data = self.partial[lane]
        while len(data) >= 4:
            size = struct.unpack_from("<I", data)[0]
            if len(data) < 4 + size:
                break
            self.frames.append(
                msgpack.unpackb(data[4 : 4 + size], strict_map_key=False, ext_hook=msgpack.ExtType)
            )
            data = data[4 + size :]
        self.partial[lane] = data

    def next(self, wanted):
        """The first frame that `wanted` accepts; others stay for later."""
        while True:
            for i, frame in enumerate(self.frames):
                if wanted(frame):
                    return self.frames.pop(i)
            assert self.read(), "the worker closed its lanes"

    def end(self, call):
        """The terminal frame of a call."""
        return self.next(lambda f: f.get("id") == call and f["type"] in TERMINAL)

    def value(self, call):
        frame = self.end(call)
        assert frame["type"] == "result", frame
        return frame["value"]

    def error(self, call):
        frame = self.end(call)
        assert frame["type"] == "error", frame
        assert set(frame["error"]) == {"type", "message", "traceback", "cancelled"}
        return frame["error"]

    def item(self, call):
        return self.next(lambda f: f.get("id") == call and f["type"] == "stream_item")["value"]

    def items(self, call):
        """All items of a call, up to its end."""
        frame = self.end(call)
        assert frame["type"] == "stream_end", frame
        mine = [f for f in self.frames if f.get("id") == call and f["type"] == "stream_item"]
        self.frames = [f for f in self.frames if f not in mine]
        return [f["value"] for f in mine]

    def quiet(self, seconds=0.2):
        """Reads frames until none has arrived for a while."""
        while select.select(self.lanes, [], [], seconds)[0]:
            self.read()

    def gets(self, n):
        """Checks that exactly so many frames arrive."""
        while len(self.frames) < n:
            assert self.read(), "the worker closed its lanes"
        self.quiet()
        assert len(self.frames) == n

    def grant(self, call, n, size=1 << 40, lane=LOOP):
        self.send({"type": "credit", "id": call, "n": n, "bytes": size}, lane)

    def stop(self, grace_ms=10000):
        """Ends the worker and checks it: exit status 0, no thread or memory left behind."""
        self.send({"type": "shutdown", "grace_ms": grace_ms})
        assert self.process.wait(TIMEOUT_S) == 0
        self.close()

    def close(self):
        for lane in self.lanes:
            lane.close()
        self.process.stdout.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def start_worker():
    w = Worker()
    w.next(lambda f: f["type"] == "ready")
    return w


@pytest.fixture
def worker():
    w = Worker()
    ready = w.next(lambda f: True)
    assert (ready["type"], ready["proto"]) == ("ready", 1)
    assert ready["name"] == "c" or PACKAGE
    yield w
    if w.process.poll() is None:
        w.stop()
    w.close()


def run(*arguments, **environment):
    env = {k: v for k, v in os.environ.items() if k != "AGENTIX_WORKER_FDS"} | environment
    return subprocess.run([WORKER, *arguments], capture_output=True, text=True, env=env)


@alone
def test_help_and_version_say_what_it_is():
    assert "AGENTIX_WORKER_FDS" in run("--help").stdout
    assert run("--version").stdout.startswith("agentix-worker 0.")


@alone
@pytest.mark.parametrize(
    ("arguments", "fds", "words"),
    [
        ([], None, "AGENTIX_WORKER_FDS is not set"),
        ([], "3", "not two open descriptors"),
        ([], "0,1", "not two open descriptors"),
        ([], "900,901", "not two open descriptors"),
        ([], "x,y", "not two open descriptors"),
        (["--nonsense"], "3,4", "--help says more"),
        (["word"], "3,4", "'word' is not expected"),
    ],
)
def test_it_refuses_to_start_without_its_lanes(arguments, fds, words):
    done = run(*arguments, **({"AGENTIX_WORKER_FDS": fds} if fds else {}))
    assert done.returncode == 2
    assert words in done.stderr


def test_a_unary_function_gives_its_result(worker):
    assert worker.value(worker.call("add", 1, 2)) == 3
    assert worker.value(worker.call("add", 1, b=41)) == 42
    assert worker.value(worker.call("add", a=-5, b=2)) == -3
    assert worker.value(worker.call("add", 1, 2, lane=THREAD)) == 3


def test_arguments_of_each_type_arrive_and_defaults_hold(worker):
    defaults = {"flag": False, "number": 0.5, "text": "none", "bytes": b""}
    assert worker.value(worker.call("describe")) == defaults
    given = {"flag": True, "number": 2.0, "text": "ä", "bytes": b"\xff"}
    assert worker.value(worker.call("describe", True, 2, "ä", b"\xff")) == given
    assert worker.value(worker.call("describe", text="x")) == defaults | {"text": "x"}


def test_raw_arguments_come_back_as_they_were_sent(worker):
    args = [None, [1, {"a": 2.5}], "x", 2**64 - 1, -(2**63), msgpack.ExtType(9, b"abc")]
    assert worker.value(worker.call("echo", *args, k=[b"v"])) == [args, {"k": [b"v"]}]
    assert worker.value(worker.call("echo")) == [[], {}]


def test_containers_and_models_are_read(worker):
    assert worker.value(worker.call("sum", [1, 2, [3], "4"])) == 3
    assert worker.value(worker.call("sum", {"a": 1, "b": 2})) == 3
    model = msgpack.ExtType(2, msgpack.packb({"x": 20, "y": 22}))
    assert worker.value(worker.call("sum", model)) == 42
    assert worker.error(worker.call("sum", 1))["type"] == "TypeError"
    assert worker.error(worker.call("sum", msgpack.ExtType(2, b"\xc1")))["type"] == "TypeError"


def test_arrays_go_in_and_out(worker):
    data = b"<f8|2,1\0" + struct.pack("<2d", 1.5, -2)
    got = worker.value(worker.call("twice", msgpack.ExtType(1, data)))
    assert got == msgpack.ExtType(1, b"<f8|2,1\0" + struct.pack("<2d", 3, -4))
    assert worker.error(worker.call("twice", msgpack.ExtType(1, b"junk")))["type"] == "ValueError"
    assert worker.error(worker.call("twice", 1))["type"] == "TypeError"


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ([], {}, "missing required argument 'a'"),
        ([1], {}, "missing required argument 'b'"),
        ([1, 2, 3], {}, "takes 2 positional arguments but 3 were given"),
        ([1, 2], {"a": 1}, "got multiple values for argument 'a'"),
        ([1, 2], {"c": 1}, "unexpected keyword argument 'c'"),
        (["x", 2], {}, "argument 'a' must be int, not str"),
        ([1, 2.5], {}, "argument 'b' must be int, not float"),
        ([True, 2], {}, "argument 'a' must be int, not bool"),
        ([None, 2], {}, "argument 'a' must be int, not None"),
    ],
)
def test_bad_arguments_are_type_errors(worker, args, kwargs, words):
    error = worker.error(worker.call("add", *args, **kwargs))
    assert error["type"] == "TypeError"
    assert words in error["message"]
    assert error["cancelled"] is False


def test_an_integer_that_is_too_large_is_an_overflow_error(worker):
    assert worker.error(worker.call("add", 2**63, 0))["type"] == "OverflowError"


def test_text_that_is_not_utf8_is_bytes(worker):
    worker.last_id += 1
    body = b"\x85\xa4type\xa4call\xa2id\x01\xa4kind\xa5unary"
    body += b"\xa6target" + msgpack.packb("c:functions::describe")
    body += b"\xa6kwargs\x81\xa4text\xa1\xff"
    worker.lanes[LOOP].sendall(struct.pack("<I", len(body)) + body)
    assert "must be str, not bytes" in worker.error(1)["message"]


@pytest.mark.parametrize(
    ("target", "type", "words"),
    [
        ("c:nowhere::f", "FunctionNotFound", "no nowhere.so or libnowhere.so in"),
        ("c:functions::nothing", "FunctionNotFound", "has no function 'nothing'"),
        ("c:../functions::add", "BadRequest", "is not of the form"),
        ("c:.hidden::add", "BadRequest", "is not of the form"),
        ("c:functions", "BadRequest", "is not of the form"),
        ("c:::", "BadRequest", "is not of the form"),
        ("c:plain::add", "ImportError", "exports no agentix_functions"),
        ("c:future::add", "ImportError", "built for function table 2"),
    ],
)
def test_targets_that_cannot_be_called_say_why(worker, target, type, words):
    error = worker.error(worker.call(target))
    assert (error["type"], error["cancelled"]) == (type, False)
    assert words in error["message"]


@alone
def test_python_functions_are_refused(worker):
    error = worker.error(worker.call("os.path::join"))
    assert error["type"] == "PythonUnavailable"
    assert "C functions only" in error["message"]


@alone
def test_a_pickled_callable_is_refused(worker):
    worker.send({"type": "call", "id": 1, "kind": "unary", "callable_payload": b"x", "args": []})
    assert worker.error(1)["type"] == "PythonUnavailable"


def test_what_was_searched_is_named():
    w = Worker(path="/nowhere:/else")
    assert "'/nowhere:/else:" in w.error(w.call("add", 1, 2))["message"]
    w.stop()


def test_a_function_called_as_another_kind_is_a_type_error(worker):
    error = worker.error(worker.call("count", 1))
    assert error["message"] == "count() is a stream function and was called as unary"
    assert worker.error(worker.call("add", 1, 2, kind="bidi"))["type"] == "TypeError"


@pytest.mark.parametrize(
    ("function", "flags", "type", "words"),
    [
        ("fail", 3, "ValueError", "this is 1 too many"),
        ("fail_silently", 3, "RuntimeError", "returned -7 without saying why"),
        ("bad_text", 3, "SerializationError", "not UTF-8"),
        ("two_values", 3, "SerializationError", "did not write one value"),
        ("half_map", 3, "SerializationError", "did not write one value"),
        ("int_keys", 0, "SerializationError", "takes text as a key only"),
    ],
)
def test_a_function_that_fails_gives_its_error(worker, function, flags, type, words):
    error = worker.error(worker.call(function, flags=flags))
    assert error["type"] == type
    assert words in error["message"]
    assert worker.value(worker.call("add", 1, 1)) == 2


def test_integer_keys_go_to_a_client_that_takes_them(worker):
    assert worker.value(worker.call("int_keys", flags=1)) == {1: 2}


def test_a_result_above_what_the_client_takes_is_message_too_large(worker):
    error = worker.error(worker.call("blob", 1 << 20))
    assert error["type"] == "MessageTooLarge"
    assert str(1 << 20) in error["message"]
    assert len(worker.value(worker.call("blob", 1000000))) == 1000000


def test_the_call_is_known_by_id_and_time(worker):
    assert worker.value(worker.call("who", call_id="abc")) == ["abc", -1]
    worker.send(
        {"type": "call", "id": 9, "kind": "unary", "target": "c:functions::who"}
        | {"timeout_ms": 60000}
    )
    assert 0 < worker.value(9)[1] <= 60000


def test_output_of_a_function_is_a_line_on_stdout(worker):
    assert worker.value(worker.call("print", "hello")) is None
    assert worker.process.stdout.readline() == b"hello\n"


@pytest.mark.parametrize("function", ["sleep_wait", "sleep_poll", "sleep_spin"])
def test_cancel_reaches_a_function_that_waits(worker, function):
    call = worker.call(function)
    assert worker.value(worker.call("add", 1, 1)) == 2
    worker.send({"type": "cancel", "id": call})
    error = worker.error(call)
    assert (error["type"], error["cancelled"]) == ("Cancelled", True)


def test_a_sleep_that_is_over_is_no_cancellation(worker):
    assert worker.value(worker.call("sleep_wait", 1)) is None


def test_a_cancel_may_overtake_its_call(worker):
    worker.send({"type": "cancel", "id": 1})
    worker.quiet(0.1)
    call = worker.call("sleep_wait", lane=THREAD)
    assert call == 1
    assert worker.error(call)["cancelled"] is True
    # Only that one, and only once.
    assert worker.value(worker.call("add", 1, 1, lane=THREAD)) == 2


def test_a_cancel_that_comes_too_late_does_nothing(worker):
    call = worker.call("add", 1, 1)
    assert worker.value(call) == 2
    worker.send({"type": "cancel", "id": call})
    assert worker.value(worker.call("add", 1, 1, lane=THREAD)) == 2
    worker.quiet()
    assert worker.frames == []


def test_a_stream_gives_its_items_and_ends(worker):
    assert worker.items(worker.call("count", 5, kind="stream")) == [0, 1, 2, 3, 4]
    assert worker.items(worker.call("count", 0, kind="stream")) == []


def test_a_stream_that_fails_gives_items_and_error(worker):
    call = worker.call("count_and_fail", kind="stream")
    assert worker.error(call)["message"] == "after one"
    assert worker.item(call) == 1


def test_items_stop_at_the_credit(worker):
    call = worker.call("count", 1000, kind="stream")
    worker.gets(WINDOW)
    worker.grant(call, WINDOW + 10)
    worker.gets(WINDOW + 10)
    worker.grant(call, 5)  # lower totals do nothing
    worker.gets(WINDOW + 10)
    worker.grant(call, 1000)
    assert worker.items(call) == list(range(1000))


def test_bytes_stop_at_the_credit_too(worker):
    call = worker.call("endless", kind="stream")
    worker.gets(48)  # each has 1,027 bytes; an item may go while one byte is left
    worker.grant(call, 1000, 70 * 1027)
    worker.gets(70)
    worker.send({"type": "cancel", "id": call})
    assert worker.error(call)["cancelled"] is True


def test_a_stream_without_reader_holds_up_nobody(worker):
    stuck = [worker.call("endless", kind="stream") for _ in range(20)]
    for call in stuck:
        worker.grant(call, 10**9)
    time.sleep(0.3)  # the test does not read: the lane of the items is full
    assert worker.value(worker.call("add", 1, 1)) == 2
    for call in stuck:
        worker.send({"type": "cancel", "id": call})
    for call in stuck:
        assert worker.error(call)["cancelled"] is True


def test_bidi_answers_each_input_and_ends_with_it(worker):
    call = worker.call("upper", kind="bidi", lane=THREAD)
    for text in ("a", "bc"):
        worker.send({"type": "bidi_in", "id": call, "item": text}, THREAD)
        assert worker.item(call) == text.upper()
    worker.send({"type": "bidi_end_in", "id": call}, THREAD)
    assert worker.end(call)["type"] == "stream_end"


def test_bidi_input_before_and_after_its_end(worker):
    call = worker.call("swallow", kind="bidi")
    for _ in range(3):
        worker.send({"type": "bidi_in", "id": call, "item": [1, 2]})
    worker.send({"type": "bidi_end_in", "id": call})
    worker.send({"type": "bidi_in", "id": call, "item": 1})
    assert worker.items(call) == [3]


def test_bidi_that_waits_for_input_is_cancelled(worker):
    call = worker.call("upper", kind="bidi")
    worker.send({"type": "cancel", "id": call})
    assert worker.error(call)["cancelled"] is True


def test_bidi_that_ends_early_ignores_what_comes(worker):
    call = worker.call("quit", kind="bidi")
    assert worker.end(call)["type"] == "stream_end"
    worker.send({"type": "bidi_in", "id": call, "item": 1})
    worker.send({"type": "bidi_end_in", "id": call})
    assert worker.value(worker.call("add", 1, 1)) == 2


def test_bidi_fails_on_a_wrong_item(worker):
    call = worker.call("upper", kind="bidi")
    worker.send({"type": "bidi_in", "id": call, "item": 7})
    assert worker.error(call)["message"] == "text is needed"


def test_input_credit_follows_what_the_function_takes(worker):
    call = worker.call("swallow", kind="bidi")
    sent, granted = 0, WINDOW
    while sent < 500:
        while sent < min(granted, 500):
            worker.send({"type": "bidi_in", "id": call, "item": "x"})
            sent += 1
        if sent < 500:
            frame = worker.next(lambda f: f["type"] == "credit")
            assert frame["id"] == call
            assert granted < frame["n"] <= sent + WINDOW
            assert frame["bytes"] <= 2 * sent + 49152
            granted = frame["n"]
    worker.send({"type": "bidi_end_in", "id": call})
    assert worker.items(call) == [500]


def test_input_past_every_limit_is_an_input_overflow(worker):
    call = worker.call("hold", kind="bidi")
    for _ in range(18):
        worker.send({"type": "bidi_in", "id": call, "item": bytes(1 << 20)})
    error = worker.error(call)
    assert (error["type"], error["cancelled"]) == ("InputOverflow", False)


def test_input_of_a_call_that_takes_none_is_ignored(worker):
    call = worker.call("sleep_wait", 50)
    worker.send({"type": "bidi_in", "id": call, "item": "x"})
    worker.send({"type": "bidi_end_in", "id": call})
    assert worker.value(call) is None


def test_a_serial_function_runs_one_at_a_time(worker):
    calls = [worker.call("serial") for _ in range(100)]
    assert sorted(worker.value(call) for call in calls) == list(range(1, 101))


def test_a_thousand_calls_at_once(worker):
    calls = [worker.call("sleep_wait", 300) for _ in range(1000)]
    adds = [worker.call("add", i, 1) for i in range(1000)]
    assert [worker.value(call) for call in adds] == list(range(1, 1001))
    assert all(worker.value(call) is None for call in calls)


def test_a_thousand_streams_at_once(worker):
    calls = [worker.call("count", WINDOW + 1, kind="stream") for _ in range(1000)]
    for call in calls:
        worker.grant(call, WINDOW + 1)
    ended, items = set(), 0
    while len(ended) < len(calls):
        for frame in worker.frames:
            items += frame["type"] == "stream_item"
            if frame["type"] in TERMINAL:
                assert frame["type"] == "stream_end"
                assert frame["id"] not in ended
                ended.add(frame["id"])
        worker.frames.clear()
        if len(ended) < len(calls):
            assert worker.read()
    assert items == 1000 * (WINDOW + 1)


@pytest.mark.parametrize(
    ("function", "statuses"),
    [
        ("abort", [-signal.SIGABRT]),
        # A sanitizer catches the signal and exits with a status of its own.
        ("segv", [-signal.SIGSEGV, -signal.SIGABRT, 1, 66]),
        ("leave", [3]),
    ],
)
def test_a_crash_is_the_end_of_the_worker(worker, function, statuses):
    waiting = worker.call("sleep_wait")
    worker.call(function)
    try:
        while worker.read():
            pass
    except ConnectionResetError:
        pass
    assert worker.process.wait(TIMEOUT_S) in statuses
    assert not [f for f in worker.frames if f.get("id") == waiting]


def test_shutdown_cancels_and_waits_for_calls():
    w = start_worker()
    calls = [w.call("sleep_wait"), w.call("endless", kind="stream"), w.call("upper", kind="bidi")]
    w.quiet()
    w.send({"type": "shutdown", "grace_ms": 10000})
    for call in calls:
        assert w.error(call)["cancelled"] is True
    assert w.process.wait(TIMEOUT_S) == 0
    w.close()


def test_shutdown_does_not_wait_for_ever():
    w = start_worker()
    w.call("deaf")
    w.quiet()
    w.stop(grace_ms=100)


def test_the_end_of_the_server_is_the_end_of_the_worker():
    w = start_worker()
    w.call("sleep_wait")
    w.call("endless", kind="stream")
    w.quiet()
    for lane in w.lanes:
        lane.close()
    assert w.process.wait(TIMEOUT_S) == 0
    w.close()


@alone
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (struct.pack("<I", 1) + b"\x93", "read a frame of the server"),
        (struct.pack("<I", 0x7FFFFFFF), "the limit is"),
        (struct.pack("<I", 5) + b"\xc0\xc0\xc0\xc0\xc0", "read a frame of the server"),
    ],
)
def test_bytes_that_are_no_frame_end_the_worker(data, words):
    w = Worker()
    w.lanes[LOOP].sendall(data)
    assert w.process.wait(TIMEOUT_S) == 1
    w.close()


def test_unknown_frames_are_ignored(worker):
    for frame in ({}, {"type": "news"}, {"type": "credit", "id": 5}, {"type": "bidi_in"}):
        worker.send(frame)
    worker.send({"type": "credit", "id": 77, "n": 1, "bytes": 1})
    assert worker.value(worker.call("add", 1, 1)) == 2


@alone
def test_a_malformed_call_is_a_bad_request(worker):
    good = {"type": "call", "id": 1, "kind": "unary", "target": "c:functions::echo"}
    for i, bad in enumerate(({"kind": "other"}, {"args": 7}, {"kwargs": []}, {"target": 1}), 1):
        worker.send(good | {"id": i} | bad)
        assert worker.error(i)["type"] == "BadRequest"
    worker.send(good | {"id": 9, "args": None, "kwargs": None})
    assert worker.value(9) == [[], {}]


def test_no_descriptor_is_left_behind(worker):
    def descriptors():
        return len(os.listdir(f"/proc/{worker.process.pid}/fd"))

    worker.value(worker.call("add", 1, 1))
    before = descriptors()
    for _ in range(50):
        call = worker.call("sleep_poll")
        worker.send({"type": "cancel", "id": call})
        worker.error(call)
    deadline = time.monotonic() + TIMEOUT_S
    while descriptors() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert descriptors() == before


@unsanitized
def test_memory_stays_flat(worker):
    def rss():
        with open(f"/proc/{worker.process.pid}/statm") as f:
            return int(f.read().split()[1]) * resource.getpagesize()

    def batch():
        # Few at once: this is about calls, not about the threads that many of them need.
        calls = [worker.call("echo", "x" * 100) for _ in range(16)]
        for call in calls:
            worker.value(call)

    for _ in range(100):
        batch()
    before = rss()
    for _ in range(400):
        batch()
    assert rss() - before < 2 << 20
