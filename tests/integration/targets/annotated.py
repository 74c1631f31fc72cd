"""Functions whose annotations need pydantic, and results of types that msgpack lacks."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import pathlib
import uuid
from collections.abc import AsyncIterator
from typing import Any, Literal

import numpy
import pydantic
from agentix import Channel


class Thing:
    pass


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Point(pydantic.BaseModel):
    x: int
    y: str = "d"


@dataclasses.dataclass
class Pair:
    a: int
    b: list[Point]


def no_schema(x: Thing):
    return 1


def no_result_schema() -> Thing:
    return Thing()


# ---- arguments ----


def described(
    when: datetime.datetime | None = None,
    where: pathlib.Path = "/tmp",
    what: Colour = Colour.RED,
    point: Point | None = None,
    pair: Pair | None = None,
    numbers: list[int] = [],  # noqa: B006
    tags: set[str] | None = None,
    mode: Literal["r", "w"] = "r",
    array: Any = None,
) -> str:
    numbers.append(0)
    return repr([when, where, what, point, pair, numbers, tags, mode, array])


async def described_stream(items: list[Point]) -> AsyncIterator[Point]:
    for item in items:
        yield item


async def described_bidi(ch: Channel[Point]) -> AsyncIterator[datetime.date]:
    async for point in ch:
        yield datetime.date(2020, 1, point.x)


# ---- results: a name -> what is returned ----

VALUES = {
    "datetime": datetime.datetime(2020, 1, 2, 3, 4, 5),
    "date": datetime.date(2020, 1, 2),
    "time": datetime.time(3, 4, 5),
    "timedelta": datetime.timedelta(days=1, seconds=3, microseconds=5),
    "negative": -datetime.timedelta(seconds=90),
    "uuid": uuid.UUID(int=1),
    "decimal": decimal.Decimal("1.50"),
    "path": pathlib.Path("/a/b"),
    "enum": Colour.RED,
    "int_enum": Level.LOW,
    "set": {1},
    "frozenset": frozenset(["x"]),
    "complex": 1 + 2j,
    "big": 2**70,
    "int_keys": {1: "a"},
    "nested": [{"when": datetime.date(2020, 1, 2)}, (Colour.RED,)],
    "model": Point(x=1),
    "dataclass": Pair(1, [Point(x=2)]),
    "int64": numpy.int64(7),
    "bool_": numpy.bool_(True),
    "float32": numpy.float32(1.5),
    "array": numpy.arange(3, dtype="<i4"),
    "bytes_array": numpy.array([1, 2], dtype="u1"),
    "object": Thing(),
    "surrogate": "\ud800",
    "enum_keys": {Colour.RED: 1},
    "uuid_keys": {uuid.UUID(int=1): 1},
}


def bare(name):
    return VALUES[name]


async def abare(name):
    return VALUES[name]


def as_datetime() -> datetime.datetime:
    return VALUES["datetime"]


def as_timedelta(name) -> datetime.timedelta:
    return VALUES[name]


def as_uuid() -> uuid.UUID:
    return VALUES["uuid"]


def as_decimal() -> decimal.Decimal:
    return VALUES["decimal"]


def as_path() -> pathlib.Path:
    return VALUES["path"]


def as_enum() -> Colour:
    return VALUES["enum"]


def as_set() -> set[int]:
    return VALUES["set"]


def as_int() -> int:
    return VALUES["big"]


def as_model() -> Point:
    return VALUES["model"]


def as_dataclass() -> Pair:
    return VALUES["dataclass"]


def as_int_keys() -> dict[int, str]:
    return VALUES["int_keys"]


def as_tuple() -> tuple[int, Point]:
    return (1, Point(x=1))


def as_optional() -> Point | None:
    return None


def wrong_type() -> Point:
    return 7
