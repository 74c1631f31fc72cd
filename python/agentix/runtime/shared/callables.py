"""Callables as pickles, and their names for people."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

__all__ = ["display_name_for", "dump_callable", "load_callable"]


def display_name_for(fn: Any) -> str:
    """ "module::name", for logs and errors.

    >>> display_name_for(len)
    'builtins::len'
    """
    module = getattr(fn, "__module__", None)
    for attribute in ("__qualname__", "__name__"):
        name = getattr(fn, attribute, None)
        if isinstance(module, str) and module and isinstance(name, str) and name:
            return f"{module}::{name}"
    return f"{type(fn).__module__}::{type(fn).__qualname__}"


def dump_callable(fn: Callable[..., Any]) -> bytes:
    """The pickle of a callable; raises what pickle raises, for lambdas and local functions too."""
    return pickle.dumps(fn)


def load_callable(payload: bytes) -> Callable[..., Any]:
    """The callable of a pickle."""
    fn: object = pickle.loads(payload)
    if not callable(fn):
        raise TypeError(f"serialized remote value is not callable (got {type(fn).__name__})")
    return fn
