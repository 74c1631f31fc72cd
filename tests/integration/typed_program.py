"""A typical user program, for the type checker: the type of `remote` for each shape."""

from collections.abc import AsyncIterator
from typing import assert_type

from agentix import Bidi, Channel, RuntimeClient, Stream, Unary
from agentix.runtime.client import reference


def plain(a: int) -> str:
    return str(a)


async def later(a: int) -> bytes:
    return bytes(a)


async def many(a: int) -> AsyncIterator[float]:
    yield float(a)


async def talk(inbox: Channel[int], factor: int = 1) -> AsyncIterator[str]:
    async for item in inbox:
        yield str(item * factor)


@reference("c:words::count")
def count(text: str) -> dict[str, int]:
    raise NotImplementedError


@reference("c:words::split")
def split(text: str, limit: int = 0) -> AsyncIterator[str]:
    raise NotImplementedError


@reference("c:words::reverse")
def reverse(inbox: Channel[bytes]) -> AsyncIterator[bytes]:
    raise NotImplementedError


async def main() -> None:
    async with RuntimeClient("http://127.0.0.1:8000") as client:
        assert_type(client.remote(plain, 1), Unary[str])
        assert_type(await client.remote(plain, a=1), str)
        assert_type(await client.remote(later, 1), bytes)
        assert_type(await client.options(timeout=1).remote(later, 1), bytes)
        assert_type(client.remote(many, 1), Stream[float])
        async for item in client.remote(many, 1):
            assert_type(item, float)
        channel: Channel[int] = Channel()
        assert_type(client.remote(talk, channel, factor=2), Bidi[int, str])
        assert_type(client.remote(count, "a b"), Unary[dict[str, int]])
        assert_type(client.remote(split, "a b", limit=1), Stream[str])
        assert_type(client.remote(reverse, Channel[bytes]()), Bidi[bytes, bytes])
        client.remote(plain, "no number")  # type: ignore[arg-type]
