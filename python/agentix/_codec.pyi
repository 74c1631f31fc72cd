"""msgpack for remote calls, in C (src/pyext/py_codec.c)."""

from collections.abc import Callable
from typing import Any, NamedTuple

class ExtType(NamedTuple):
    code: int
    data: bytes

def pack(
    value: Any,
    *,
    fallback: Callable[[Any], Any] | None = None,
    int_keys: bool = True,
    byte_dtypes: bool = True,
) -> bytes: ...
def unpack(data: bytes, /) -> Any: ...
