"""What `remote()` returns: one type for each shape of call.

value = await client.remote(add, 1, 2)                    # Unary
async for item in client.remote(count, 10): ...           # Stream
async for reply in client.remote(chat, inbox=channel): ...  # Bidi

match client.remote(fn):
    case Unary(_) as call: ...
    case Stream(_) as items: ...
    case Bidi(inbox, _) as talk: ...
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from agentix.runtime.shared.rpc import Channel

In = TypeVar("In")
R = TypeVar("R")

__all__ = ["Bidi", "RemoteCall", "Stream", "Unary"]


@dataclass(frozen=True, slots=True)
class Unary(Generic[R]):
    """One result: `await` it once. Nothing is sent before that."""

    _call: Awaitable[R]

    def __await__(self) -> Generator[Any, None, R]:
        return self._call.__await__()


@dataclass(frozen=True, slots=True)
class Stream(Generic[R]):
    """Items: `async for` over it. Nothing is sent before that; leaving the loop early cancels."""

    _items: AsyncIterator[R]

    def __aiter__(self) -> AsyncIterator[R]:
        return self._items


@dataclass(frozen=True, slots=True)
class Bidi(Generic[In, R]):
    """Items in both directions: send into `inbox`, `async for` over the call."""

    inbox: Channel[In]
    _items: AsyncIterator[R]

    def __aiter__(self) -> AsyncIterator[R]:
        return self._items


RemoteCall: TypeAlias = Unary[R] | Stream[R] | Bidi[Any, R]
