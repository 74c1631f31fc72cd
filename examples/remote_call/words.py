"""The functions on the server's side: plain Python, in a module that the server finds by --path."""

import os
import socket
from collections.abc import AsyncIterator

from agentix import Channel


async def where() -> tuple[int, str]:
    """Unary: one call, one result."""
    return os.getpid(), socket.gethostname()


def longest(words: list[str]) -> str:
    """Unary: a plain function runs in a thread of the worker."""
    return max(words, key=len)


async def letters(text: str) -> AsyncIterator[str]:
    """Stream: an async generator; its items come one by one."""
    for letter in text:
        yield letter


async def shout(inbox: Channel[str]) -> AsyncIterator[str]:
    """Bidi: items go in and come out while it runs."""
    async for word in inbox:
        yield word.upper() + "!"


def broken() -> None:
    raise ValueError("this function fails on purpose")
