"""The functions that client tests call."""

import asyncio
import dataclasses
import datetime
import enum
from collections.abc import AsyncIterator

from agentix import Channel


def add(a: int, b: int = 0) -> int:
    return a + b


async def async_add(a: int, b: int = 0) -> int:
    return a + b


def echo(value):
    return value


def fail(text: str) -> None:
    raise ValueError(text)


async def sleep(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "slept"


async def count(n: int) -> AsyncIterator[int]:
    for i in range(n):
        yield i
        await asyncio.sleep(0)


async def forever() -> AsyncIterator[int]:
    i = 0
    while True:
        yield i
        i += 1
        await asyncio.sleep(0.001)


async def fail_after(n: int) -> AsyncIterator[int]:
    for i in range(n):
        yield i
    raise RuntimeError("after")


async def scale(inbox: Channel[int], factor: int = 2) -> AsyncIterator[int]:
    async for item in inbox:
        yield item * factor


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: int


def shift(day: datetime.date, point: Point, color: Color) -> tuple[datetime.date, Point, Color]:
    return day + datetime.timedelta(days=1), Point(point.x + 1, point.y), color


def unresolved(a: "Nowhere") -> int:  # noqa: F821
    return 0


class Multiplier:
    def __init__(self, by):
        self.by = by

    def times(self, n: int) -> int:
        return n * self.by

    def __call__(self, n: int) -> int:
        return n * self.by
