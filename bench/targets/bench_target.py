"""The functions that the remote-call figures call; every side uses this file."""

from collections.abc import AsyncIterator


async def add(a: int, b: int) -> int:
    return a + b


def add_sync(a: int, b: int) -> int:
    return a + b


async def count(n: int) -> AsyncIterator[int]:
    for i in range(n):
        yield i


async def size(data: bytes) -> int:
    return len(data)


async def make(n: int) -> bytes:
    return b"x" * n


async def echo(data: bytes) -> bytes:
    return data
