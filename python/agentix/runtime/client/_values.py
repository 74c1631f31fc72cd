"""How values are encoded: by their annotation, or unchanged.

Values that are built of None, bool, int, float, str, bytes, list, tuple and dict are packed as they
are. pydantic is imported when an annotation asks for more than that.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

_EMPTY = inspect.Parameter.empty
_NONE = type(None)
_EXACT = (bool, int, float, str, bytes, list, dict, _NONE)
_CONTAINERS = (list, dict, tuple)


def is_plain(annotation: Any) -> bool:
    """Whether values of this annotation can be packed unchanged."""
    if annotation in (_EMPTY, Any, None, object, tuple) or annotation in _EXACT:
        return True
    origin = typing.get_origin(annotation)
    if origin in _CONTAINERS or origin in (typing.Union, types.UnionType):
        return all(a is Ellipsis or is_plain(a) for a in typing.get_args(annotation))
    return False


def _adapter(annotation: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(annotation)


_SCALARS = (bool, float, str, bytes, bytearray, memoryview, _NONE)


def plain(value: Any) -> Any:
    """The value with everything that msgpack lacks turned into text, numbers and lists.

    The other end knows the annotation, and turns it back.
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is int:
        return value if -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, dict):
        return {plain(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(v) for v in value]
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return to_jsonable_python(value)
    except PydanticSerializationError:
        return value  # an array, or something that packing will refuse


class Encoder:
    """Turns an argument into what msgpack has, by the parameter's annotation."""

    __slots__ = ("_annotation", "_dump", "is_plain")

    def __init__(self, annotation: Any) -> None:
        self._annotation = annotation
        try:
            self.is_plain = is_plain(annotation)
        except TypeError:  # an annotation that cannot be compared
            self.is_plain = False
        self._dump: Callable[..., Any] | None = None

    def __call__(self, value: Any) -> Any:
        if self.is_plain:
            return value
        try:
            if self._dump is None:
                self._dump = _adapter(self._annotation).dump_python
            value = self._dump(value, mode="python")
        except Exception:
            pass  # a value that does not match its annotation is sent unchanged, or fails to pack
        return plain(value)


def encode_fallback(value: Any) -> Any:
    """For objects that neither msgpack nor an annotation covers: models and dataclasses."""
    dump = getattr(type(value), "model_dump", None)
    if dump is not None:
        return dump(value, mode="python")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    raise TypeError(f"agentix.codec: cannot encode {type(value)!r}")


def decoder_for(annotation: Any) -> tuple[type | None, Callable[[Any], Any] | None]:
    """The exact type that needs no validation, and the function that validates all others."""
    if annotation is _EMPTY or annotation is Any or annotation is object:
        return None, None
    if annotation is None:
        annotation = _NONE
    exact = annotation if isinstance(annotation, type) and annotation in _EXACT else None
    validate: Callable[[Any], Any] | None = None

    def look(value: Any) -> Any:
        nonlocal validate
        if validate is None:
            validate = _adapter(annotation).validate_python
        return validate(value)

    return exact, look
