"""From an address to an open WebSocket: the HTTP upgrade and Engine.IO's open packet."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentix.runtime.client._address import Address, proxy_for
from agentix.runtime.client._wire import HandshakeError, HttpStatus, Wire, open_wire

if TYPE_CHECKING:
    import ssl

# RFC 6455: the server hashes this to prove that it understood the upgrade.
_ACCEPT_SALT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


@dataclass(frozen=True, slots=True)
class Door:
    """How to reach a server: address, extra headers, certificate checks."""

    address: Address
    headers: Mapping[str, str]
    context: ssl.SSLContext | None

    async def knock(self) -> Wire:
        """A connected stream."""
        return await open_wire(self.address, proxy_for(self.address), self.context)

    def head(self, path: str, extra: Mapping[str, str]) -> bytes:
        """The head of a GET request."""
        lines = [f"GET {path} HTTP/1.1", f"Host: {self.address.authority}"]
        for name, value in {**self.headers, **extra}.items():
            if any(c in name + value for c in "\r\n\0"):
                raise ValueError(f"header {name!r} has a line break in it")
            lines.append(f"{name}: {value}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def engine_path(self, query: str) -> str:
        """Socket.IO drops the path of the URL and keeps its query, as 0.1.5 does."""
        own = f"{self.address.query}&" if self.address.query else ""
        return f"/socket.io/?{own}EIO=4&{query}"


async def http_get(door: Door, path: str) -> bytes:
    """The body of a GET request; HttpStatus if the answer is not 200."""
    wire = await door.knock()
    try:
        await wire.send(door.head(path, {"Connection": "close"}))
        response = await wire.read_head()
        body = await wire.read_body(response)
    finally:
        wire.close()
    if response.status != 200:
        raise HttpStatus(response.status, response.reason, body.decode("utf-8", "replace"))
    return body


async def upgrade(door: Door, wire: Wire, sid: str | None = None) -> None:
    """Turns the stream into a WebSocket; HttpStatus if the server refuses."""
    key = base64.b64encode(os.urandom(16)).decode()
    query = "transport=websocket" + (f"&sid={sid}" if sid else "")
    extra = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key,
    }
    await wire.send(door.head(door.engine_path(query), extra))
    response = await wire.read_head()
    if response.status != 101:
        body = await wire.read_body(response)
        raise HttpStatus(response.status, response.reason, body.decode("utf-8", "replace"))
    digest = hashlib.sha1(key.encode() + _ACCEPT_SALT, usedforsecurity=False).digest()
    if response.headers.get("sec-websocket-accept") != base64.b64encode(digest).decode():
        raise HandshakeError("the answer to the WebSocket upgrade is not for our key")


async def poll_open(door: Door, wire: Wire) -> dict[str, Any]:
    """Gets the open packet by long polling, for servers that do not accept a WebSocket first."""
    await wire.send(door.head(door.engine_path(f"transport=polling&t={time.time()}"), {}))
    response = await wire.read_head()
    body = (await wire.read_body(response)).decode("utf-8", "replace")
    if response.status != 200:
        raise HttpStatus(response.status, response.reason, body)
    return parse_open(body)


def parse_open(packet: str) -> dict[str, Any]:
    """The map of an Engine.IO open packet."""
    found = parse_map(packet[1:]) if packet.startswith("0") else None
    if found is None or not isinstance(found.get("sid"), str):
        raise HandshakeError(f"not an Engine.IO server: {packet[:80]!r}")
    return found


def parse_map(text: str) -> dict[str, Any] | None:
    """A JSON object, or None."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
