#!/usr/bin/env python3
"""Records what Python's msgpack makes of values, used as the 0.1.5 peer uses it.

    build/venv/bin/python tests/recordings/make_msgpack.py      (needs numpy and pydantic)

Writes tests/recordings/msgpack/values.txt for
tests/unit/codec/test_mp_recordings.c, one value a line:
`value NAME HEX TEXT` for a msgpack value and `frame NAME HEX TEXT` for a worker frame (u32 little
endian, then the map). TEXT says what the value is, without blanks:

    nil true false 12 -3     themselves
    f:HEX                    a float, its 64 bits
    s:HEX b:HEX              text (UTF-8) and bytes
    [A,B] {K:V,K:V}          arrays and maps
    ext:CODE:HEX             an extension that has no meaning here
    ndarray:DTYPE:SHAPE:HEX  a numpy array; the numbers of SHAPE are joined by 'x'
    model:MAP                a pydantic model
"""

import struct
from pathlib import Path
from typing import Any

import msgpack
import numpy
import pydantic

OUT = Path(__file__).parent / "msgpack" / "values.txt"
NDARRAY, MODEL = 1, 2


class Point(pydantic.BaseModel):
    """A model with a plain and a nested field."""

    x: int
    y: str
    inner: Any = None

    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)


def encode_extension(value: Any) -> msgpack.ExtType:
    """What msgpack cannot pack itself: arrays and models."""
    if isinstance(value, numpy.ndarray):
        header = f"{value.dtype.str}|{','.join(str(n) for n in value.shape)}"
        return msgpack.ExtType(NDARRAY, header.encode() + b"\0" + value.tobytes())
    if isinstance(value, pydantic.BaseModel):
        return msgpack.ExtType(MODEL, pack(value.model_dump(mode="python")))
    raise TypeError(type(value).__name__)


def pack(value: Any) -> bytes:
    """The bytes of one value."""
    return msgpack.packb(value, default=encode_extension, use_bin_type=True)


def text(value: Any) -> str:
    """The value in the notation above."""
    match value:
        case None:
            return "nil"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return "f:" + struct.pack(">d", value).hex()
        case str():
            return "s:" + value.encode().hex()
        case bytes() | bytearray() | memoryview():
            return "b:" + bytes(value).hex()
        case msgpack.ExtType():
            return f"ext:{value.code}:{value.data.hex()}"
        case msgpack.Timestamp():
            return f"ext:-1:{value.to_bytes().hex()}"
        case list() | tuple():
            return "[" + ",".join(text(item) for item in value) + "]"
        case dict():
            return "{" + ",".join(f"{text(key)}:{text(item)}" for key, item in value.items()) + "}"
        case numpy.ndarray():
            shape = "x".join(str(n) for n in value.shape)
            return f"ndarray:{value.dtype.str}:{shape}:{value.tobytes().hex()}"
        case pydantic.BaseModel():
            return "model:" + text(value.model_dump(mode="python"))
    raise TypeError(type(value).__name__)


def integers() -> list[int]:
    """Both sides of every border between two forms."""
    borders = [0, 2**7, 2**8, 2**16, 2**32, 2**63, -(2**5), -(2**7), -(2**15), -(2**31)]
    near = {border + step for border in borders for step in (-1, 0, 1)}
    return sorted(near | {-(2**63), 2**64 - 1})


def arrays() -> dict[str, numpy.ndarray]:
    """One of each dtype that travels, and the odd shapes."""
    plain = ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
    named = {f"array_{kind}": numpy.arange(6).astype(kind).reshape(2, 3) for kind in plain}
    # Padding inside long doubles is whatever memory held, but for zeros.
    named |= {f"array_{kind}": numpy.zeros(2, dtype=kind) for kind in ("f16", "c32")}
    return named | {
        "array_big_endian": numpy.arange(3, dtype=">i4"),
        "array_bytes": numpy.array([b"a", b"abc"]),
        "array_text": numpy.array(["a", "äb"]),
        "array_dates": numpy.array(["2024-01-02", "1970-01-01"], dtype="M8[s]"),
        "array_spans": numpy.array([1, 2], dtype="m8[25ns]"),
        "array_0d": numpy.array(1.5),
        "array_empty": numpy.zeros((0, 4), dtype="f4"),
        "array_5d": numpy.zeros((1, 2, 1, 2, 1), dtype="u2"),
        "array_fortran": numpy.asfortranarray(numpy.arange(6, dtype="i4").reshape(2, 3)),
    }


def values() -> dict[str, Any]:
    """Every value that is recorded, by name."""
    found: dict[str, Any] = {"nil": None, "true": True, "false": False}
    found |= {f"int_{n}": n for n in integers()}
    found |= {
        f"float_{n}": float(n)
        for n in ("0", "-0.0", "1.5", "1e308", "5e-324", "inf", "-inf", "nan")
    }
    found |= {f"str_{n}": "x" * n for n in (0, 1, 31, 32, 255, 256)} | {"str_utf8": "naïve 数 🙂\0"}
    found |= {f"bin_{n}": b"\xff" * n for n in (0, 1, 255, 256)}
    found |= {"bytearray": bytearray(b"ab"), "memoryview": memoryview(b"ab")}
    found |= {f"array_of_{n}": [None] * n for n in (0, 1, 15, 16)} | {"tuple": (1, "a", b"b")}
    found |= {f"map_of_{n}": {f"k{i}": i for i in range(n)} for n in (0, 1, 15, 16)}
    found |= {"map_bin_key": {b"k": 1}, "nested": {"a": [{"b": [[], {}]}, None]}}
    found |= {f"ext_{n}": msgpack.ExtType(5, b"x" * n) for n in (0, 1, 2, 3, 4, 8, 16, 17, 256)}
    found |= {
        "timestamp": msgpack.Timestamp(1700000000),
        "timestamp_ns": msgpack.Timestamp(1700000000, 5),
    }
    found |= arrays()
    found |= {
        "model": Point(x=1, y="d"),
        "model_nested": Point(x=1, y="d", inner={"a": numpy.arange(2)}),
    }
    found["call"] = call_request() | {"call_id": "0123456789abcdef0123456789abcdef"}
    return found


def call_request() -> dict[str, Any]:
    """The payload of a `unary` event, in the client's order of keys."""
    return {
        "callable_payload": b"\x80\x04\x8c\x04math\x94\x8c\x04sqrt\x94\x93\x94.",
        "display_name": "math.sqrt",
        "shape": "unary",
        "call_id": "",
        "args": [2.0, {"k": [1, 2]}],
        "kwargs": {"input": "hello", "data": numpy.arange(3.0)},
    }


def frames() -> dict[str, dict[str, Any]]:
    """Each type of worker frame."""
    error = {"type": "ValueError", "message": "no", "traceback": "..."}
    return {
        "call": {"type": "call", "kind": "unary"} | call_request(),
        "bidi_in": {"type": "bidi_in", "call_id": "c", "item": {"n": 1}},
        "bidi_end_in": {"type": "bidi_end_in", "call_id": "c"},
        "cancel": {"type": "cancel", "call_id": "c"},
        "shutdown": {"type": "shutdown"},
        "ready": {"type": "ready"},
        "result": {"type": "result", "call_id": "c", "value": [1, None]},
        "error": {"type": "error", "call_id": "c", "error": error},
        "stream_item": {"type": "stream_item", "call_id": "c", "value": b"\0"},
        "stream_end": {"type": "stream_end", "call_id": "c"},
    }


def main() -> None:
    """Writes the file."""
    lines = ["# Made by tests/recordings/make_msgpack.py, which says what the columns are."]
    lines += [f"value {name} {pack(value).hex()} {text(value)}" for name, value in values().items()]
    for name, fields in frames().items():
        body = pack(fields)
        lines.append(f"frame {name} {(struct.pack('<I', len(body)) + body).hex()} {text(fields)}")
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
