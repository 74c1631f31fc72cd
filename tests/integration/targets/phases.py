"""Functions that report each phase with an empty file in `place`, and then wait in that phase."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from pathlib import Path

from agentix import Channel


def mark(place: str, phase: str) -> None:
    Path(place, phase).touch()


async def stay(place: str, phase: str) -> None:
    """Until it is cancelled, of which it tells too."""
    await asyncio.sleep(0)  # a turn of the loop, in which items leave the process
    mark(place, phase)
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        mark(place, "cancelled")
        raise


def add(a: int, b: int) -> int:
    return a + b


async def aadd(a: int, b: int) -> int:
    return a + b


async def unary(place: str) -> None:
    await stay(place, "runs")


def plain(place: str) -> None:
    mark(place, "runs")
    time.sleep(600)


async def stream(place: str, n: int) -> AsyncIterator[int]:
    """Stays behind its last item and before its end."""
    for i in range(n):
        yield i
    await stay(place, "runs")


async def endless(place: str) -> AsyncIterator[str]:
    """Stays where its credit ends; an item has 1,003 bytes."""
    mark(place, "runs")
    for i in itertools.count():
        yield f"{i:01000}"


async def bidi(inbox: Channel[int], place: str) -> AsyncIterator[int]:
    """Doubles its input; stays behind the input's end, an item, and before its own end."""
    mark(place, "runs")
    async for n in inbox:
        yield 2 * n
    mark(place, "input_ended")
    yield -1
    await stay(place, "said_all")


async def bidi_deaf(inbox: Channel[int], place: str) -> AsyncIterator[int]:
    """Takes no input."""
    await stay(place, "runs")
    yield 0


async def slow_to_cancel(place: str) -> None:
    """Does not end when it is cancelled."""
    try:
        await stay(place, "runs")
    finally:
        await asyncio.sleep(600)


async def slow_to_cancel_stream(place: str) -> AsyncIterator[int]:
    yield 1
    await slow_to_cancel(place)


async def slow_to_cancel_bidi(inbox: Channel[int], place: str) -> AsyncIterator[int]:
    yield await anext(aiter(inbox))
    await slow_to_cancel(place)
