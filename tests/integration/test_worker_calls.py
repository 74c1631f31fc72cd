"""The Python worker: unary calls."""

import functools
import os
import shutil
import sys
import time

import pytest
import worker_peer
from worker_peer import LOOP, THREAD, TIMEOUT_S, WorkerPeer

sys.path.insert(0, str(worker_peer.TARGETS))

import plain
import shapes


@pytest.fixture(scope="module")
def shared():
    with WorkerPeer() as worker:
        yield worker


@pytest.fixture
def worker():
    with WorkerPeer() as worker:
        yield worker


BOTH = pytest.mark.parametrize("lane", [LOOP, THREAD])


def test_worker_says_that_it_is_ready(worker):
    assert worker.ready["proto"] == 1
    assert worker.ready["name"].startswith("python 3.")


@BOTH
@pytest.mark.parametrize("fn", [plain.add, plain.aadd], ids=["def", "async"])
def test_call_is_answered_on_either_lane(shared, fn, lane):
    assert shared.call(fn, 1, b=5, lane=lane) == 6
    assert shared.call(fn, 1, lane=lane) == 3


@BOTH
def test_target_by_reference(shared, lane):
    assert shared.call("plain::add", 1, lane=lane) == 3
    assert shared.call("shapes::Counter.double", 4, lane=lane) == 8


def test_lane_is_hinted_once_for_each_callable(worker):
    for _ in range(3):
        worker.call("plain::add", 1, lane=LOOP)
        worker.call("plain::aadd", 1, lane=THREAD)
        worker.call("shapes::coroutine", 1, lane=LOOP)
    assert worker.hints == {"plain::add": [THREAD], "plain::aadd": [LOOP]}


def test_asyncio_is_not_imported_for_plain_functions(worker):
    assert worker.call("plain::loaded", "asyncio") is False
    assert worker.call("plain::loaded", "inspect") is False
    worker.call("plain::aadd", 1)
    assert worker.call("plain::loaded", "asyncio") is True
    assert worker.call("plain::loaded", "pydantic") is False


def test_coroutine_has_a_task_and_the_main_thread(shared):
    assert shared.call(shapes.loop_facts) == [True, True]
    assert shared.call(shapes.thread_name) is False


@pytest.mark.parametrize(
    ("fn", "args", "expected"),
    [
        (len, ([1, 2],), 2),
        (shapes.returns_coroutine, (5,), 5),
        (shapes.later, (6,), 6),
        (shapes.numbers, (3,), [0, 1, 2]),
        (functools.partial(plain.add, 1), (4,), 5),
        (functools.partial(plain.aadd, b=9), (4,), 13),
        (shapes.Counter(5).add, (1,), 6),
        (shapes.Counter(5).aadd, (1,), 6),
        (shapes.Counter.made, (4,), 4),
        (shapes.Counter.double, (4,), 8),
        (shapes.Async(), (1,), [1, True]),
        (shapes.wrapped, (1,), 1),
        (shapes.wrapped_async, (1,), 1),
        ("x".upper, (), "X"),
    ],
    ids=lambda v: getattr(v, "__qualname__", None),
)
@BOTH
def test_callables_of_every_kind(shared, fn, args, expected, lane):
    assert shared.call(fn, *args, lane=lane) == expected
    assert shared.call(fn, *args, lane=lane) == expected


@BOTH
def test_instance_is_made_anew_for_each_call(shared, lane):
    counter = shapes.Counter(1)
    assert [shared.call(counter, lane=lane) for _ in range(3)] == [2, 2, 2]


@BOTH
@pytest.mark.parametrize("fn", [shapes.set_variable, shapes.aset_variable])
def test_context_variables_do_not_leak_into_the_next_call(shared, fn, lane):
    assert [shared.call(fn, "x", lane=lane) for _ in range(3)] == ["unset"] * 3


def blocked(worker, n):
    """Waits until so many calls of block_until hold a thread."""
    while worker.call(shapes.how_many_blocked) < n:
        pass


def answered(worker, calls):
    return [frame["id"] for frame in worker.frames if frame.get("id") in calls]


def test_blocking_functions_do_not_stall_others(shared, tmp_path):
    gate = tmp_path / "gate"
    shared.call(shapes.forget)
    calls = [shared.start(shapes.block_until, str(gate), lane=lane) for lane in (LOOP, THREAD) * 4]
    blocked(shared, len(calls))  # beside each other
    assert shared.call(plain.aadd, 1) == 3
    assert shared.call(plain.add, 1) == 3
    assert shared.call(plain.add, 1, lane=THREAD) == 3
    assert not answered(shared, calls)
    gate.touch()
    for call in calls:
        assert shared.answer(call)["type"] == "result"


def test_limit_of_threads_holds_and_queued_calls_still_run(tmp_path):
    gate = tmp_path / "gate"
    with WorkerPeer(env={"AGENTIX_MAX_THREADS": "2"}) as worker:
        calls = [worker.start(shapes.block_until, str(gate), i, lane=i % 2) for i in range(6)]
        blocked(worker, 2)
        assert worker.call(plain.aadd, 1, lane=THREAD) == 3
        assert worker.silent(0.1) and worker.call(shapes.how_many_blocked) == 2
        gate.touch()
        assert sorted(worker.answer(call)["value"] for call in calls) == list(range(6))


def test_many_calls_at_once_all_get_their_own_answer(shared):
    calls = {}
    for i in range(2000):
        fn = plain.add if i % 2 else plain.aadd
        calls[shared.start(fn, i, lane=i // 2 % 2)] = i + 2
    for call, expected in calls.items():
        assert shared.answer(call)["value"] == expected


@BOTH
def test_calls_that_fill_both_directions_are_all_answered(shared, lane):
    text = "x" * 100_000  # more than the sockets hold, there and back
    calls = [shared.start(shapes.plain, text, lane=lane) for _ in range(50)]
    assert all(shared.answer(call)["value"] == text for call in calls)


# ---- arguments ----


@pytest.mark.parametrize("fn", ["plain::add", "plain::aadd"])
def test_values_are_validated_as_pydantic_does(shared, fn):
    assert shared.call(fn, "7") == 9
    error = shared.call(fn, "x")
    assert error["type"] == "ValidationError"
    assert "valid integer" in error["message"]
    assert error["traceback"] is None


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((), {}, "missing a required argument: 'a'"),
        ((1, 2, 3), {}, "too many positional"),
        ((1,), {"a": 2}, "multiple values"),
        ((1,), {"z": 2}, "unexpected keyword"),
    ],
)
@BOTH
def test_arguments_that_do_not_bind_are_a_type_error(shared, args, kwargs, words, lane):
    error = shared.call(plain.add, *args, lane=lane, **kwargs)
    assert error["type"] == "TypeError"
    assert words in error["message"]
    assert "Traceback" in error["traceback"]


def test_every_kind_of_parameter(shared):
    assert shared.call("plain::kinds", 1, 2, c=3) == [1, 2, [], 3, {}]
    assert shared.call("plain::kinds", 1, 2, "3", "4", c=3, k="5") == [1, 2, [3, 4], 3, {"k": 5}]
    assert shared.call("plain::kinds", 1, b="2", c=3) == [1, 2, [], 3, {}]
    error = shared.call("plain::kinds", 1, 2, "x", c=3)
    assert error["type"] == "ValidationError"


def test_defaults_are_validated_like_arguments_but_none_stays_none(shared):
    assert shared.call("plain::defaults") == ["1", "int", "None", "float"]
    assert shared.call("plain::defaults", 5) == ["5", "int", "None", "float"]


def test_exact_types_are_converted_without_pydantic(worker):
    assert worker.call("plain::scale", 2) == 4.0
    assert worker.call("plain::maybe", None) == "NoneType"
    assert worker.call("plain::maybe", "x") == "str"
    assert worker.call("plain::pair", [1, 2]) == "tuple"
    assert worker.call("plain::loaded", "pydantic") is False


def test_undecodable_arguments_are_an_error_of_that_call(shared):
    frame = {"type": "call", "id": 10**6, "kind": "unary", "target": "plain::add"}
    shared.send(frame | {"args": [shared_ext()]})
    assert shared.recv(id=10**6)["error"]["type"] == "ValueError"
    assert shared.call("plain::add", 1) == 3


def shared_ext():
    import msgpack

    return msgpack.ExtType(1, b"no array")


# ---- failures ----


@pytest.mark.parametrize(
    ("fn", "args", "kind", "message"),
    [
        (shapes.fail, ("k",), "KeyError", "'k'"),
        (shapes.afail, ("k",), "LookupError", "k"),
        (shapes.raise_cancelled, (), "CancelledError", "mine"),
        (shapes.araise_cancelled, (), "CancelledError", "mine"),
        (shapes.later_raise_cancelled, (), "CancelledError", "mine"),
        (shapes.fail_unprintable, (), "Unprintable", "<Unprintable"),
        (shapes.fail_surrogate, (), "ValueError", "\\ud800"),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_what_a_function_raises_is_told_with_its_traceback(shared, fn, args, kind, message):
    error = shared.call(fn, *args)
    assert error["type"] == kind
    assert message in error["message"]
    assert fn.__name__ in error["traceback"]
    assert error["cancelled"] is False


def test_generator_without_end_is_an_error(shared):
    error = shared.call(shapes.too_many)
    assert error["type"] == "ValueError"
    assert "more than" in error["message"]


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (b"garbage", "UnpicklingError"),
        (b"", "EOFError"),
        (b"\x80\x04K\x01.", "TypeError"),
        ("no_such_module::f", "ModuleNotFoundError"),
        ("plain::nothing", "AttributeError"),
        ("plain", "ValueError"),
        ("shapes::variable", "TypeError"),
    ],
)
@BOTH
def test_callable_that_cannot_be_loaded_is_an_error(shared, payload, kind, lane):
    error = shared.call(payload, lane=lane)
    assert error["type"] == kind
    assert "Traceback" in error["traceback"]


def test_annotation_that_makes_no_sense_is_an_error(shared):
    assert shared.call("plain::bad_name", 1)["type"] == "NameError"
    assert shared.call("annotated::no_schema", 1)["type"] == "PydanticSchemaGenerationError"
    assert shared.call("annotated::no_result_schema")["type"] == "PydanticSchemaGenerationError"


def test_shape_must_fit_the_callable(shared):
    error = shared.call(shapes.count, 3)
    assert error["type"] == "ShapeMismatch"
    assert "stream" in error["message"] and "unary" in error["message"]
    assert shared.call(plain.add, 3, kind="stream")["type"] == "ShapeMismatch"
    assert shared.call(shapes.count, 3, kind="bidi")["type"] == "ShapeMismatch"
    for kind, name in [
        ("unary", "NotAUnaryCallable"),
        ("stream", "NotAStreamFunction"),
        ("bidi", "NotABidiFunction"),
    ]:
        shared.last_id += 1
        other = "stream" if kind == "unary" else "unary"
        frame = {"type": "call", "id": shared.last_id, "kind": kind, "shape": other}
        shared.send(frame | {"target": "plain::add", "args": [1]})
        assert shared.answer(shared.last_id)["error"]["type"] == name


def test_result_past_the_receivers_limit_is_an_error(shared):
    error = shared.call(shapes.plain, "x" * 2000, max=1000)
    assert error["type"] == "MessageTooLarge"
    assert "2003" in error["message"] and "1000" in error["message"]


# ---- cancel ----


def wait_until_seen(worker, what):
    until = time.monotonic() + TIMEOUT_S
    while what not in (seen := worker.call("shapes::what_was_seen")):
        assert time.monotonic() < until, seen
        time.sleep(0.002)


@BOTH
@pytest.mark.parametrize("fn", [shapes.wait_for_ever, shapes.spin_for_ever])
def test_cancel_is_raised_inside_the_function(worker, fn, lane):
    call = worker.start(fn, lane=lane)
    wait_until_seen(worker, "started")
    worker.send({"type": "cancel", "id": call})
    frame = worker.answer(call)
    assert frame["error"]["cancelled"] is True
    assert frame["error"]["type"] == "Cancelled"
    assert worker.call("shapes::what_was_seen") == ["started", "cancelled"]


def test_cancel_hits_no_other_call_of_the_same_thread(worker):
    for _ in range(200):
        call = worker.start(shapes.block, 0, lane=THREAD)
        worker.send({"type": "cancel", "id": call})
        other = worker.start(plain.add, 1, lane=THREAD)
        assert worker.answer(other)["value"] == 3
        assert worker.answer(call)["type"] in ("result", "error")


def test_cancel_that_overtakes_its_call_works(worker):
    worker.call(plain.aadd, 1)
    worker.send({"type": "cancel", "id": 1000})
    worker.call(plain.aadd, 1)
    worker.last_id = 999
    frame = worker.answer(worker.start(shapes.spin_for_ever, lane=THREAD))
    assert frame["error"]["cancelled"] is True
    assert worker.call("shapes::what_was_seen") == []
    assert worker.call(plain.add, 1, lane=THREAD) == 3


def test_cancel_of_a_queued_call_ends_it():
    with WorkerPeer(env={"AGENTIX_MAX_THREADS": "1"}) as worker:
        first = worker.start(shapes.block, 0.2)
        second = worker.start(shapes.spin_for_ever)
        worker.send({"type": "cancel", "id": second})
        assert worker.answer(first)["type"] == "result"
        assert worker.answer(second)["error"]["cancelled"] is True


def test_function_that_survives_its_cancel_answers_once(worker):
    call = worker.start(shapes.survive_cancel)
    worker.send({"type": "cancel", "id": call})
    assert worker.answer(call)["value"] == "survived"
    assert worker.silent(0.05)


def test_cancel_of_an_unknown_or_ended_call_is_ignored(worker):
    call = worker.start(plain.add, 1)
    worker.answer(call)
    for number in (call, 77, 0, 2**63):
        worker.send({"type": "cancel", "id": number})
    assert worker.call(plain.add, 1) == 3


# ---- the process ----


def test_output_of_user_code_never_touches_the_frames(worker):
    call = worker.start(shapes.noise)
    reader = os.fdopen(os.dup(worker.process.stdout.fileno()), "rb")
    assert len(reader.read(100_001)) == 100_001
    assert worker.answer(call)["value"] == "quiet"
    assert worker.call(plain.add, 1) == 3
    reader.close()


def test_children_of_user_code_do_not_inherit_the_lanes(worker):
    assert worker.call("plain::open_descriptors_of_a_child") == [0, 1, 2]


def test_working_directory_is_never_on_the_path(tmp_path):
    (tmp_path / "plain.py").write_text("def add(a): return 'shadowed'\n")
    (tmp_path / "only_here.py").write_text("def f(): return 1\n")
    with WorkerPeer(cwd=tmp_path) as worker:
        assert worker.call("plain::add", 1) == 3
        assert worker.call("only_here::f")["type"] == "ModuleNotFoundError"
    env = {"PYTHONPATH": str(tmp_path), "PYTHONHOME": "/nonexistent"}
    with WorkerPeer(env=env) as worker:
        assert worker.call("only_here::f")["type"] == "ModuleNotFoundError"


def test_worker_that_cannot_start_says_why(tmp_path):
    package = tmp_path / "agentix"
    shutil.copytree(worker_peer.PACKAGE / "agentix", package)
    (package / "_worker.abi3.so").write_bytes(b"no library")
    with WorkerPeer(package=tmp_path, ready=False) as worker:
        frame = worker.recv()
        assert frame["type"] == "boot_error"
        assert frame["error"]["type"] == "ImportError"
        assert "_worker" in frame["error"]["traceback"]
        assert worker.exit_code() == 1


def test_lines_of_output_leave_at_once(worker):
    assert worker.call("plain::say", "hello") is None
    assert worker.process.stdout.readline() == b"hello\n"


def test_call_that_waited_for_a_thread_runs_when_one_is_free():
    with WorkerPeer(env={"AGENTIX_MAX_THREADS": "1"}) as worker:
        worker.call(shapes.block, 0)
        for _ in range(100):
            calls = [worker.start(shapes.block, 0.0002, lane=lane) for lane in (THREAD, LOOP, LOOP)]
            for call in calls:
                assert worker.answer(call)["type"] == "result"
