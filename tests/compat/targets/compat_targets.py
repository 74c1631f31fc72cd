"""The functions that the clients of tests/compat call. They use only the documented API, so they
run with our package and with agentixx 0.1.5."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import decimal
import enum
import os
import pathlib
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator

from agentix import Channel
from pydantic import BaseModel

events: list[str] = []


class Point(BaseModel):
    x: int
    y: int = 0


@dataclasses.dataclass
class Pair:
    left: int
    right: str


class Color(enum.Enum):
    RED = "red"


class Opaque:
    """Nothing that any codec knows."""


async def add(a: int, b: int = 10) -> int:
    return a + b


def add_sync(a: int, b: int = 10) -> int:
    return a + b


def untyped(*args, **kwargs):
    return [list(args), kwargs]


async def mirror(point: Point, scale: int = 1) -> Point:
    return Point(x=point.y * scale, y=point.x * scale)


def flip(pair: Pair) -> Pair:
    return Pair(int(pair.right), str(pair.left))


def coordinates(p: tuple[int, int]) -> tuple[int, int]:
    return (p[1], p[0])


def nothing() -> None:
    return None


async def count(n: int, pause: float = 0) -> AsyncIterator[int]:
    try:
        for i in range(n):
            if pause:
                await asyncio.sleep(pause)
            yield i
    finally:
        events.append("count ended")


async def count_and_fail(n: int) -> AsyncIterator[int]:
    for i in range(n):
        yield i
    raise ValueError("after the items")


async def count_points(n: int) -> AsyncIterator[Point]:
    for i in range(n):
        yield Point(x=i)


async def pieces(n: int, size: int) -> AsyncIterator[bytes]:
    for _ in range(n):
        yield b"x" * size


async def never_waits() -> AsyncIterator[int]:
    i = 0
    while True:
        yield i
        i += 1


async def running_sum(inbox: Channel[int], start: int = 0) -> AsyncIterator[int]:
    total = start
    async for n in inbox:
        total += n
        yield total


async def strict_inbox(inbox: Channel[Point]) -> AsyncIterator[int]:
    try:
        async for p in inbox:
            yield p.x
    finally:
        events.append("strict_inbox ended")


async def opaque_inbox(inbox: Channel[Opaque]) -> AsyncIterator[int]:
    async for _ in inbox:
        yield 1


async def fail(message: str) -> None:
    raise LookupError(message)


def fail_sync(message: str) -> None:
    raise KeyError(message)


async def wait_long(name: str) -> None:
    try:
        events.append(f"{name} began")
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        events.append(f"{name} cancelled")
        raise


async def raise_cancelled() -> None:
    raise asyncio.CancelledError("by myself")


def take_events() -> list[str]:
    taken, events[:] = list(events), []
    return taken


def sleep(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def numbers(*args: int, **named: int) -> int:
    return sum(args) + sum(named.values())


def generate(n: int):
    yield from range(n)


def say(text: str) -> int:
    print(text, flush=True)
    return len(text)


def child_says(text: str) -> int:
    return subprocess.run(["echo", text], check=False).returncode


def child_reads() -> bytes:
    return subprocess.run(["cat"], stdout=subprocess.PIPE, check=False).stdout


def leave() -> None:
    sys.exit(4)


def crash() -> None:
    os.abort()


def blob(n: int) -> bytes:
    return b"x" * n


def measure(data: bytes) -> int:
    return len(data)


def when() -> datetime.datetime:
    return datetime.datetime(2020, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


def identity() -> uuid.UUID:
    return uuid.UUID(int=7)


def path() -> pathlib.Path:
    return pathlib.Path("/tmp/x")


def price() -> decimal.Decimal:
    return decimal.Decimal("1.10")


def color() -> Color:
    return Color.RED


def group() -> set[int]:
    return {3}


def huge() -> int:
    return 1 << 80


def opaque():
    return Opaque()


def by_number() -> dict[int, str]:
    return {1: "a", 2: "b"}


def keys(mapping: dict[int, str]) -> list[str]:
    return sorted(mapping.values())


def array(dtype: str):
    import numpy

    return numpy.arange(6).reshape(2, 3).astype(dtype)


def array_sum(values) -> float:
    return float(values.sum())


def where_is(name: str) -> str:
    return str(__import__(name).__file__)


class Counter:
    """State travels in the pickle; each call has an instance of its own."""

    def __init__(self, start: int):
        self.n = start

    def __call__(self, step: int = 1) -> int:
        self.n += step
        return self.n

    def value(self) -> int:
        return self.n

    @classmethod
    def name(cls) -> str:
        return cls.__name__

    @staticmethod
    def double(x: int) -> int:
        return 2 * x
