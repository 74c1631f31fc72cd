"""Prepared data of a function before its call: pickle, signature, encoding of its values.

Plans are kept for plain functions that are found by module and name: their pickle is that name, and
cannot change. Partials, bound methods and callable instances carry state in their pickle, which is
therefore made anew for each call.
"""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from agentix._client import Plan
from agentix._codec import pack
from agentix.runtime.client._values import Encoder, decoder_for, encode_fallback
from agentix.runtime.client.references import ASYNC_ITERATORS, declared_shape, target_of
from agentix.runtime.shared.callables import display_name_for, dump_callable
from agentix.runtime.shared.rpc import Channel, detect_declared_shape, is_channel_annotation


class Recipe:
    """A plan, and the data that only the Python side needs."""

    __slots__ = ("channel", "kind", "plan", "push_item", "signature")

    def __init__(self, fn: Callable[..., Any]) -> None:
        target = target_of(fn)
        self.signature = _signature(fn)
        self.kind = declared_shape(self.signature) if target else detect_declared_shape(fn)
        self.channel = _channel_parameter(self.signature) if self.kind == "bidi" else None
        self.push_item = Encoder(_item_of(self.channel.annotation)) if self.channel else None
        name = target or display_name_for(fn)
        prefix, failure = _prefix(fn, target, name, self.kind)
        exact, validate = decoder_for(self._result_annotation(fn))
        self.plan = Plan(
            self.kind,
            name,
            prefix,
            failure,
            _dumper(self.signature),
            encode_fallback,
            exact,
            validate,
        )

    def _result_annotation(self, fn: Callable[..., Any]) -> Any:
        annotation = self.signature.return_annotation
        if isinstance(fn, type):
            return fn  # calling a class returns an instance, whatever __init__ is annotated with
        if self.kind == "unary":
            return annotation
        if typing.get_origin(annotation) in ASYNC_ITERATORS:
            return _item_of(annotation)
        return inspect.Parameter.empty

    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Channel[Any], dict[str, Any]]:
        """The channel of a bidi call, and all other arguments by name."""
        assert self.channel is not None
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        named: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            kind = self.signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_KEYWORD:
                named.update(value)
            elif kind is not inspect.Parameter.VAR_POSITIONAL:
                named[name] = value
            elif value:
                raise TypeError(f"a bidi call carries its arguments by name, and {name!r} has none")
        channel = named.pop(self.channel.name)
        if not isinstance(channel, Channel):
            raise TypeError(
                f"argument {self.channel.name!r} must be a Channel, not {type(channel).__name__}"
            )
        return channel, named


_ANYTHING = inspect.Signature(
    [
        inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
        inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
    ]
)


def _signature(fn: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(fn, eval_str=True)
    except ValueError:
        if not callable(fn):
            raise
        return _ANYTHING  # a builtin without a signature, such as max


def _item_of(annotation: Any) -> Any:
    arguments = typing.get_args(annotation)
    return arguments[0] if arguments else inspect.Parameter.empty


def _channel_parameter(signature: inspect.Signature) -> inspect.Parameter:
    return next(p for p in signature.parameters.values() if is_channel_annotation(p.annotation))


def _prefix(
    fn: Callable[..., Any], target: str | None, name: str, kind: str
) -> tuple[bytes, BaseException | None]:
    """The part of the request that is the same for each call, or the reason why it has none."""
    fields: dict[str, str | bytes]
    try:
        fields = {"target": target} if target else {"callable_payload": dump_callable(fn)}
    except Exception as e:
        return b"", e
    fields |= {"display_name": name, "shape": kind}
    return b"".join(pack(key) + pack(value) for key, value in fields.items()), None


def _dumper(
    signature: inspect.Signature,
) -> Callable[[tuple[Any, ...], dict[str, Any]], tuple[list[Any], dict[str, Any]]] | None:
    """The function that converts arguments for msgpack; None if they can be packed unchanged."""
    parameters = list(signature.parameters.values())
    encoders = [Encoder(p.annotation) for p in parameters]
    if all(e.is_plain for e in encoders):
        return None
    by_name: Mapping[str, Encoder] = {p.name: e for p, e in zip(parameters, encoders, strict=True)}
    anything = Encoder(inspect.Parameter.empty)
    rest = next(
        (e for p, e in zip(parameters, encoders, strict=True) if p.kind is p.VAR_POSITIONAL),
        anything,
    )
    others = next(
        (e for p, e in zip(parameters, encoders, strict=True) if p.kind is p.VAR_KEYWORD), anything
    )
    positional = [
        e
        for p, e in zip(parameters, encoders, strict=True)
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]

    def dump(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        values = [
            (positional[i] if i < len(positional) else rest)(value) for i, value in enumerate(args)
        ]
        return values, {name: by_name.get(name, others)(value) for name, value in kwargs.items()}

    return dump


_RECIPES: dict[types.FunctionType, Recipe] = {}


def _is_found_by_name(fn: types.FunctionType) -> bool:
    found: Any = sys.modules.get(fn.__module__)
    for part in fn.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is fn


def recipe_for(fn: Callable[..., Any]) -> Recipe:
    """The recipe of a function; cached if that is safe."""
    if type(fn) is not types.FunctionType:
        return Recipe(fn)
    recipe = _RECIPES.get(fn)
    if recipe is None:
        recipe = Recipe(fn)
        if _is_found_by_name(fn):
            _RECIPES[fn] = recipe
    return recipe
