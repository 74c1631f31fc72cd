"""Definitions of remote calls that client and worker share: channels, and the shape of a
callable."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from typing import Any

T = TypeVar("T")

__all__ = ["Channel", "detect_declared_shape", "is_channel_annotation"]


class Channel(Generic[T]):
    """A first-in first-out queue between the two sides of a bidi call.

    >>> async def shout(words: Channel[str]):
    ...     async for word in words:
    ...         yield word.upper()
    """

    def __init__(self, maxsize: int = 0) -> None:
        self.maxsize = maxsize
        self._items: deque[T] = deque()
        self._closed = False
        self._takers: deque[asyncio.Future[None]] = deque()
        self._givers: deque[asyncio.Future[None]] = deque()

    @staticmethod
    def _wake(waiting: deque[asyncio.Future[None]]) -> None:
        while waiting:
            future = waiting.popleft()
            if not future.done():
                future.set_result(None)
                return

    async def _wait(self, waiting: deque[asyncio.Future[None]]) -> None:
        import asyncio

        future = asyncio.get_running_loop().create_future()
        waiting.append(future)
        try:
            await future
        except BaseException:
            # A woken task that cannot continue wakes the next one.
            if future.done() and not future.cancelled():
                self._wake(waiting)
            elif future in waiting:
                waiting.remove(future)
            raise

    async def send(self, item: T) -> None:
        """Adds an item; waits while the channel is full."""
        while not self._closed and 0 < self.maxsize <= len(self._items):
            await self._wait(self._givers)
        if self._closed:
            raise RuntimeError("Channel is closed")
        self._items.append(item)
        self._wake(self._takers)

    async def close(self) -> None:
        """No more items follow; those that wait are still received."""
        while not self._closed and 0 < self.maxsize <= len(self._items):
            await self._wait(self._givers)
        self._closed = True
        for waiting in (self._takers, self._givers):
            while waiting:
                self._wake(waiting)

    def __aiter__(self) -> Channel[T]:
        return self

    async def __anext__(self) -> T:
        while not self._items:
            if self._closed:
                raise StopAsyncIteration
            await self._wait(self._takers)
        item = self._items.popleft()
        self._wake(self._givers)
        return item


def is_channel_annotation(annotation: object) -> bool:
    """Is this `Channel` or `Channel[T]`?"""
    origin = getattr(annotation, "__origin__", annotation)
    return isinstance(origin, type) and issubclass(origin, Channel)


def detect_declared_shape(fn: Callable[..., Any]) -> str:
    """ "unary", "stream" or "bidi", according to the signature of a callable."""
    from agentix.runtime.shared._signature import ASYNC_GENERATOR, flags, signature

    found = signature(fn)
    if not flags(fn) & ASYNC_GENERATOR:
        return "unary"
    if any(is_channel_annotation(p.annotation) for p in found.parameters):
        return "bidi"
    return "stream"


def __getattr__(name: str) -> object:
    # A worker needs none of these, and dataclasses are slow to import.
    if name in ("Bidi", "RemoteCall", "Stream", "Unary"):
        from agentix.runtime.shared import calls

        found: object = getattr(calls, name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
