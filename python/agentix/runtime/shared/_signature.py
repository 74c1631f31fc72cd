"""Signatures of callables.

inspect knows every callable, but its import takes longer than a first call may. A plain function
has all that is needed in its own attributes; inspect is used for other callables.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # type checkers take it for true; a worker starts without typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# The values of inspect.Parameter.kind.
POSITIONAL_ONLY, POSITIONAL_OR_KEYWORD, VAR_POSITIONAL, KEYWORD_ONLY, VAR_KEYWORD = range(5)

_VARARGS, _VARKEYWORDS = 0x04, 0x08
GENERATOR, COROUTINE, ASYNC_GENERATOR = 0x20, 0x80, 0x200


class Empty:
    """There is no annotation, or no default."""


class Parameter:
    __slots__ = ("annotation", "default", "kind", "name")

    def __init__(self, name: str, kind: int, annotation: Any = Empty, default: Any = Empty) -> None:
        self.name, self.kind, self.annotation, self.default = name, kind, annotation, default


class Signature:
    __slots__ = ("parameters", "returns")

    def __init__(self, parameters: list[Parameter], returns: Any) -> None:
        self.parameters, self.returns = parameters, returns


def _function_type() -> type:
    return type(_function_type)


def _evaluated(function: Any) -> dict[str, Any]:
    """The annotations of a function; strings are evaluated in the function's globals."""
    found = dict(function.__annotations__)
    for name, value in found.items():
        if isinstance(value, str):
            found[name] = eval(value, function.__globals__)
    return found


def _of_function(function: Any) -> Signature:
    code = function.__code__
    annotations = _evaluated(function)
    n, only_positional = code.co_argcount, code.co_posonlyargcount
    names = code.co_varnames
    defaults = function.__defaults__ or ()
    parameters = []
    for i in range(n):
        kind = POSITIONAL_ONLY if i < only_positional else POSITIONAL_OR_KEYWORD
        default = defaults[i - n] if i - n >= -len(defaults) else Empty
        parameters.append(Parameter(names[i], kind, annotations.get(names[i], Empty), default))
    at = n + code.co_kwonlyargcount
    if code.co_flags & _VARARGS:
        parameters.append(Parameter(names[at], VAR_POSITIONAL, annotations.get(names[at], Empty)))
        at += 1
    for name in names[n : n + code.co_kwonlyargcount]:
        default = (function.__kwdefaults__ or {}).get(name, Empty)
        parameters.append(Parameter(name, KEYWORD_ONLY, annotations.get(name, Empty), default))
    if code.co_flags & _VARKEYWORDS:
        parameters.append(Parameter(names[at], VAR_KEYWORD, annotations.get(names[at], Empty)))
    return Signature(parameters, annotations.get("return", Empty))


def _of_anything(fn: Callable[..., Any]) -> Signature:
    import inspect

    def ours(value: Any) -> Any:
        return Empty if value is inspect.Parameter.empty else value

    found = inspect.signature(fn, eval_str=True)
    parameters = [
        Parameter(p.name, int(p.kind), ours(p.annotation), ours(p.default))
        for p in found.parameters.values()
    ]
    return Signature(parameters, ours(found.return_annotation))


def is_plain(fn: Any) -> bool:
    """Is it a function made by `def`, without a wrapper?"""
    return type(fn) is _function_type() and not fn.__dict__


def signature(fn: Callable[..., Any]) -> Signature:
    """The signature with evaluated annotations; raises what evaluating them raises. For builtins
    without a signature, one that accepts anything."""
    if is_plain(fn):
        return _of_function(fn)
    try:
        return _of_anything(fn)
    except ValueError:
        return Signature(
            [Parameter("args", VAR_POSITIONAL), Parameter("kwargs", VAR_KEYWORD)], Empty
        )


def flags(fn: Any) -> int:
    """The code flags of the function behind partials, wrappers, methods and instances."""
    if is_plain(fn):
        return int(fn.__code__.co_flags)
    seen = 0
    while seen < 64:  # the chain may be circular
        seen += 1
        partial = getattr(sys.modules.get("functools"), "partial", ())
        if isinstance(fn, partial):
            fn = fn.func
        elif hasattr(fn, "__wrapped__") and not isinstance(fn, type):
            fn = fn.__wrapped__
        elif hasattr(fn, "__func__"):
            fn = fn.__func__
        elif hasattr(fn, "__code__"):
            return int(fn.__code__.co_flags)
        elif not isinstance(fn, type) and callable(fn):
            inner = type(fn).__call__
            if not hasattr(inner, "__code__") and not hasattr(inner, "__wrapped__"):
                return 0
            fn = inner
        else:
            return 0
    return 0
