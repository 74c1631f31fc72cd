"""The Python worker: conversion of arguments and results."""

import datetime
import decimal
import pathlib
import sys
import uuid

import msgpack
import numpy
import pydantic
import pytest
import worker_peer
from worker_peer import OURS, WorkerPeer

sys.path.insert(0, str(worker_peer.TARGETS))

import annotated

OLD = 0


@pytest.fixture(scope="module")
def worker():
    with WorkerPeer() as worker:
        yield worker


# ---- arguments ----


def test_arguments_become_what_the_annotation_says(worker):
    given = {
        "when": "2020-01-02T03:04:05",
        "what": "red",
        "point": {"x": "1"},
        "pair": {"a": 1, "b": [{"x": 2}]},
        "numbers": ["1", 2],
        "tags": ["a"],
        "mode": "w",
    }
    assert worker.call("annotated::described", **given) == (
        "[datetime.datetime(2020, 1, 2, 3, 4, 5), PosixPath('/tmp'), <Colour.RED: 'red'>, "
        "Point(x=1, y='d'), Pair(a=1, b=[Point(x=2, y='d')]), [1, 2, 0], {'a'}, 'w', None]"
    )


def test_defaults_are_made_anew_for_each_call(worker):
    for _ in range(3):
        text = worker.call("annotated::described")
        assert (
            text
            == "[None, PosixPath('/tmp'), <Colour.RED: 'red'>, None, None, [0], None, 'r', None]"
        )


@pytest.mark.parametrize(
    "given", [{"when": "never"}, {"what": "blue"}, {"point": {}}, {"mode": "x"}, {"numbers": 1}]
)
def test_what_does_not_validate_is_told(worker, given):
    error = worker.call("annotated::described", **given)
    assert error["type"] == "ValidationError"
    assert error["traceback"] is None


def test_arrays_and_integer_keys_are_accepted_in_arguments(worker):
    array = msgpack.ExtType(1, b"<i4|2\0" + bytes(8))
    assert "array([0, 0], dtype=int32)" in worker.call("annotated::described", array=array)
    assert worker.call("shapes::plain", {1: {2: 3}}, flags=OURS) == {1: {2: 3}}


def test_models_in_streams_and_bidi(worker):
    call = worker.start("annotated::described_stream", [{"x": 1}, {"x": 2}], kind="stream")
    assert worker.recv(id=call)["value"] == {"x": 1, "y": "d"}
    assert worker.recv(id=call)["value"] == {"x": 2, "y": "d"}
    assert worker.answer(call)["type"] == "stream_end"
    call = worker.start("annotated::described_bidi", kind="bidi", flags=OURS)
    worker.send({"type": "bidi_in", "id": call, "item": {"x": 5}})
    assert worker.recv(id=call)["value"] == "2020-01-05"
    worker.send({"type": "bidi_in", "id": call, "item": {}})
    assert worker.answer(call)["error"]["type"] == "ValidationError"


# ---- results ----

LEAVES = {
    "datetime": "2020-01-02T03:04:05",
    "date": "2020-01-02",
    "time": "03:04:05",
    "timedelta": "P1DT3.000005S",
    "negative": "-P0DT90S",
    "uuid": str(uuid.UUID(int=1)),
    "decimal": "1.50",
    "path": "/a/b",
    "enum": "red",
    "set": [1],
    "frozenset": ["x"],
    "complex": "(1+2j)",
    "big": str(2**70),
    "nested": [{"when": "2020-01-02"}, ["red"]],
    "enum_keys": {"red": 1},
    "uuid_keys": {str(uuid.UUID(int=1)): 1},
}
ALWAYS = {
    "int_enum": 1,
    "model": {"x": 1, "y": "d"},
    "dataclass": {"a": 1, "b": [{"x": 2, "y": "d"}]},
    "int64": 7,
    "bool_": True,
    "float32": 1.5,
}


@pytest.mark.parametrize("name", LEAVES)
@pytest.mark.parametrize("fn", ["annotated::bare", "annotated::abare"])
def test_leaf_is_text_for_an_old_receiver_and_an_error_for_ours(worker, name, fn):
    assert worker.call(fn, name, flags=OLD) == LEAVES[name]
    error = worker.call(fn, name, flags=OURS)
    assert error["type"] == "SerializationError"
    assert error["message"].startswith("failed to serialize return value: ")
    assert error["traceback"] is None


@pytest.mark.parametrize("name", ALWAYS)
@pytest.mark.parametrize("flags", [OLD, OURS])
def test_structures_and_numbers_need_no_annotation(worker, name, flags):
    assert worker.call("annotated::bare", name, flags=flags) == ALWAYS[name]


@pytest.mark.parametrize("name", ["object", "surrogate"])
@pytest.mark.parametrize("flags", [OLD, OURS])
def test_what_nothing_can_carry_is_an_error(worker, name, flags):
    assert worker.call("annotated::bare", name, flags=flags)["type"] == "SerializationError"
    assert worker.call("plain::add", 1) == 3


def test_integer_keys_are_text_for_an_old_receiver_only(worker):
    for fn, args in (("annotated::bare", ("int_keys",)), ("annotated::as_int_keys", ())):
        assert worker.call(fn, *args, flags=OLD) == {"1": "a"}
        assert worker.call(fn, *args, flags=OURS) == {1: "a"}


def test_arrays_travel_but_one_byte_dtypes_not_to_an_old_receiver(worker):
    for flags in (OLD, OURS):
        array = worker.call("annotated::bare", "array", flags=flags)
        assert (array.code, array.data) == (1, b"<i4|3\0" + numpy.arange(3, dtype="<i4").tobytes())
    assert worker.call("annotated::bare", "bytes_array", flags=OURS).data == b"|u1|2\0\1\2"
    error = worker.call("annotated::bare", "bytes_array", flags=OLD)
    assert error["type"] == "SerializationError"


@pytest.mark.parametrize(
    ("fn", "args", "annotation", "value"),
    [
        ("as_datetime", (), datetime.datetime, annotated.VALUES["datetime"]),
        ("as_timedelta", ("timedelta",), datetime.timedelta, annotated.VALUES["timedelta"]),
        ("as_timedelta", ("negative",), datetime.timedelta, annotated.VALUES["negative"]),
        ("as_uuid", (), uuid.UUID, uuid.UUID(int=1)),
        ("as_decimal", (), decimal.Decimal, decimal.Decimal("1.50")),
        ("as_path", (), pathlib.Path, pathlib.Path("/a/b")),
        ("as_enum", (), annotated.Colour, annotated.Colour.RED),
        ("as_set", (), set[int], {1}),
        ("as_int", (), int, 2**70),
        ("as_model", (), annotated.Point, annotated.Point(x=1)),
        ("as_dataclass", (), annotated.Pair, annotated.Pair(1, [annotated.Point(x=2)])),
        ("as_int_keys", (), dict[int, str], {1: "a"}),
        ("as_tuple", (), tuple[int, annotated.Point], (1, annotated.Point(x=1))),
        ("as_optional", (), annotated.Point | None, None),
    ],
)
@pytest.mark.parametrize("flags", [OLD, OURS])
def test_annotated_result_comes_back_as_that_type(worker, fn, args, annotation, value, flags):
    sent = worker.call(f"annotated::{fn}", *args, flags=flags)
    assert pydantic.TypeAdapter(annotation).validate_python(sent) == value


def test_result_of_another_type_than_annotated_is_sent_as_it_is(worker):
    assert worker.call("annotated::wrong_type") == 7
