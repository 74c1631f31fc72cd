"""agentix._codec: Python objects as msgpack, compared with the msgpack package for Python."""

import enum
import math
import sys

import msgpack
import numpy
import pydantic
import pytest
from agentix.runtime.shared.codec import ExtType, pack, unpack


class Colour(enum.IntEnum):
    RED = 1


class Name(str):
    pass


class Point(pydantic.BaseModel):
    x: int
    y: str


SAME = [
    None, True, False, 0, 1, 127, 128, 255, 256, 65535, 65536, 2**32, 2**63, 2**64 - 1,
    -1, -32, -33, -128, -129, -32768, -32769, -(2**31), -(2**31) - 1, -(2**63),
    0.0, -0.0, 1.5, math.inf, "", "a", "ä" * 40, "x" * 70000, b"", b"\0" * 300, b"\1" * 70000,
    [], [1, [2, [3]]], list(range(20)), list(range(70000)), (1, 2), {}, {"a": {"b": [None]}},
    {str(i): i for i in range(20)}, {b"key": 1}, Colour.RED, Name("n"), numpy.float64(1.25),
    bytearray(b"ab"), memoryview(b"cd"),
]  # fmt: skip


@pytest.mark.parametrize("value", SAME, ids=lambda v: repr(v)[:40])
def test_packs_the_same_bytes_as_the_common_packer(value):
    assert pack(value) == msgpack.packb(value)


@pytest.mark.parametrize("value", SAME, ids=lambda v: repr(v)[:40])
def test_reads_what_the_common_packer_wrote(value):
    data = msgpack.packb(value)
    assert unpack(data) == msgpack.unpackb(data)


def test_reads_from_any_buffer():
    assert unpack(bytearray(b"\x93\x01\x02\x03")) == [1, 2, 3]
    assert unpack(memoryview(b"\xc0")) is None


@pytest.mark.parametrize(
    "array",
    [
        numpy.arange(6, dtype="<i4").reshape(2, 3),
        numpy.array(1.5),
        numpy.zeros((0, 3)),
        numpy.array([True, False]),
        numpy.array([1, 2], dtype="u1"),
        numpy.array(["ab", "c"]),
        numpy.array(["2020-01-01"], dtype="M8[s]"),
        numpy.arange(10)[::2],
        numpy.asfortranarray(numpy.arange(6).reshape(2, 3)),
        numpy.array([1, 2], dtype=">i2"),
    ],
    ids=lambda a: f"{a.dtype.str}{a.shape}",
)
def test_array_comes_back_equal_and_read_only(array):
    back = unpack(pack(array))
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert (back == array).all()
    assert not back.flags.writeable


def test_array_has_the_bytes_of_the_contract():
    data = pack(numpy.arange(6, dtype="<i4").reshape(2, 3))
    assert data[:11] == bytes.fromhex("c720013c69347c322c3300")


def test_array_of_one_byte_dtype_is_refused_where_the_receiver_cannot_take_it():
    with pytest.raises(TypeError, match="one-byte"):
        pack(numpy.array([1], dtype="u1"), byte_dtypes=False)


@pytest.mark.parametrize(
    "array",
    [numpy.array([object()]), numpy.zeros(1, dtype=[("a", "i4")])],
    ids=["object", "struct"],
)
def test_array_whose_bytes_mean_nothing_elsewhere_is_refused(array):
    with pytest.raises(ValueError, match="dtype"):
        pack(array)


def test_model_is_extension_2_and_comes_back_as_a_dict():
    data = pack(Point(x=1, y="d"))
    assert data == bytes.fromhex("d70282a17801a179a164")
    assert unpack(data) == {"x": 1, "y": "d"}


def test_fallback_replaces_what_msgpack_does_not_have():
    assert unpack(pack([{1, 2}, 2**70, Point(x=1, y="")], fallback=str)) == [
        "{1, 2}", str(2**70), "x=1 y=''",
    ]  # fmt: skip


def test_fallback_that_never_ends_is_an_error():
    with pytest.raises(ValueError, match="deeper"):
        pack(object(), fallback=lambda value: value)


def test_fallback_that_changes_the_container_is_an_error():
    growing = [object(), 1]
    with pytest.raises(RuntimeError, match="changed size"):
        pack(growing, fallback=lambda value: growing.append(1))
    table = {"a": object()}
    with pytest.raises(RuntimeError, match="changed size"):
        pack(table, fallback=lambda value: table.update(b=1))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (object(), TypeError),
        ({1}, TypeError),
        (2**64, OverflowError),
        (-(2**63) - 1, OverflowError),
        ("\ud800", UnicodeEncodeError),
        ({(1, 2): 3}, TypeError),
    ],
    ids=repr,
)
def test_what_cannot_be_packed_raises(value, kind):
    with pytest.raises(kind):
        pack(value)


def test_number_keys_stay_numbers_or_become_text():
    assert unpack(pack({1: "a", 2.5: "b", None: "c"})) == {1: "a", 2.5: "b", None: "c"}
    assert unpack(pack({1: "a", -2: "b"}, int_keys=False)) == {"1": "a", "-2": "b"}


def test_deep_nesting_is_an_error_on_both_sides():
    value = []
    for _ in range(200):
        value = [value]
    with pytest.raises(ValueError, match="deeper"):
        pack(value)
    with pytest.raises(ValueError, match="deeper"):
        unpack(b"\x91" * 200 + b"\xc0")


def test_unknown_extension_is_a_pair_and_a_timestamp_goes_back_as_it_came():
    pair = unpack(msgpack.packb(msgpack.ExtType(5, b"xy")))
    assert pair == ExtType((5, b"xy"))
    assert (pair.code, pair.data) == (5, b"xy")
    assert unpack(pack(pair)) == [5, b"xy"]
    stamp = msgpack.packb(msgpack.Timestamp(1, 2))
    assert pack(unpack(stamp)) == stamp


@pytest.mark.parametrize(
    "data",
    [b"", b"\xc1", b"\xa1\xff", b"\x91", b"\x01\x02", b"\x81\x90\x01", b"\xdd\xff\xff\xff\xff",
     b"\xc7\x03\x01abc", b"\xd4\x02\x01"],
    ids=bytes.hex,
)  # fmt: skip
def test_malformed_bytes_are_a_value_error(data):
    with pytest.raises(ValueError):
        unpack(data)


def test_nothing_leaks_when_values_fail_in_the_middle():
    marker = object()
    before = sys.getrefcount(marker)
    for _ in range(100):
        with pytest.raises(TypeError):
            pack([1, {"a": marker}])
    assert sys.getrefcount(marker) == before
