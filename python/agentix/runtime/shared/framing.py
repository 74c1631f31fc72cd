"""Frames: a length (u32, little endian) and one msgpack map."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

from agentix.runtime.shared.codec import pack, unpack

__all__ = ["FRAME_MAX", "pack_frame", "read_frame", "write_frame"]

FRAME_MAX = 256 << 20
_LENGTH = struct.Struct("<I")


def pack_frame(payload: dict[str, Any]) -> bytes:
    """The bytes of a frame.

    >>> pack_frame({})
    b'\\x01\\x00\\x00\\x00\\x80'
    """
    body = pack(payload)
    if len(body) > FRAME_MAX:
        raise ValueError(f"frame of {len(body)} bytes, the limit is {FRAME_MAX}")
    return _LENGTH.pack(len(body)) + body


async def read_frame(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    """Reads the next frame; None when the other side has closed. Length 0 is an empty map."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        if length > FRAME_MAX:
            raise ValueError(f"frame of {length} bytes, the limit is {FRAME_MAX}")
        body = await reader.readexactly(length)
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    frame = unpack(body) if body else {}
    if not isinstance(frame, dict):
        raise ValueError(f"a frame is of type {type(frame).__name__}, not a map")
    return frame


async def write_frame(writer: asyncio.StreamWriter, payload: dict[str, Any]) -> None:
    """Writes a frame and waits while the other side is slow."""
    writer.write(pack_frame(payload))
    await writer.drain()
