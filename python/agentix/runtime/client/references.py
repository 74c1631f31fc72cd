"""Declarations of functions that exist only in the runtime, with the name of their target."""

from __future__ import annotations

import inspect
import typing
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from typing import Any, TypeVar

from agentix.runtime.shared.rpc import is_channel_annotation

F = TypeVar("F", bound=Callable[..., Any])

ASYNC_ITERATORS = (AsyncIterator, AsyncGenerator, AsyncIterable)
_ATTRIBUTE = "__agentix_target__"


def reference(target: str) -> Callable[[F], F]:
    """Declares a function of the runtime: of a shared object, or a Python function only there.

        @reference("c:words::count")
        def count(text: str) -> dict[str, int]:
            raise NotImplementedError

        @reference("c:words::split")
        def split(text: str, limit: int = 0) -> AsyncIterator[str]:
            raise NotImplementedError

        @reference("c:words::reverse")
        def reverse(inbox: Channel[bytes]) -> AsyncIterator[bytes]:
            raise NotImplementedError

        await client.remote(count, "one two three")

    The signature defines the encoding of values and the shape of the call; the body never runs.
    """
    module, separator, name = target.partition("::")
    if not (module and separator and name):
        raise ValueError(f"a target is 'module::name' or 'c:library::name', not {target!r}")

    def mark(fn: F) -> F:
        setattr(fn, _ATTRIBUTE, target)
        return fn

    return mark


def target_of(fn: Callable[..., Any]) -> str | None:
    """The target given to `reference`, or None."""
    found: str | None = getattr(fn, _ATTRIBUTE, None)
    return found


def declared_shape(signature: inspect.Signature) -> str:
    """The shape of a declaration, by its signature alone: it has no body."""
    annotation = signature.return_annotation
    if (typing.get_origin(annotation) or annotation) not in ASYNC_ITERATORS:
        return "unary"
    if any(is_channel_annotation(p.annotation) for p in signature.parameters.values()):
        return "bidi"
    return "stream"
