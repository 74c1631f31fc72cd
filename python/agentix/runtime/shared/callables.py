"""Callables on the wire: their name for people, and their pickle."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

__all__ = ["display_name_for", "dump_callable", "load_callable"]


def display_name_for(fn: Callable[..., Any]) -> str:
    """module::qualname; for objects without a name, that of their type.

    >>> import math
    >>> display_name_for(math.sqrt)
    'math::sqrt'
    """
    module = getattr(fn, "__module__", None)
    if isinstance(module, str) and module:
        for name in (getattr(fn, "__qualname__", None), getattr(fn, "__name__", None)):
            if isinstance(name, str) and name:
                return f"{module}::{name}"
    return f"{type(fn).__module__}::{type(fn).__qualname__}"


def dump_callable(fn: Callable[..., Any]) -> bytes:
    """The pickle; lambdas and local functions have none."""
    return pickle.dumps(fn)


def load_callable(payload: bytes) -> Callable[..., Any]:
    """The callable of a pickle. Only for bytes of someone who may run code here."""
    fn = pickle.loads(payload)
    if not callable(fn):
        raise TypeError(f"serialized remote value is not callable (got {type(fn).__name__})")
    return fn  # type: ignore[no-any-return]
