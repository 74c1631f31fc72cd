"""The owner of a session: connects it, shakes hands, connects again.

    detached --wanted()--> connecting --> open --lost()--> connecting again, where calls are open
                              |             |
                              +-- failed ---+--> the open calls fail; the next call tries anew

The C session calls `wanted`, `packet`, `lost`, `error` and `context_id`; none of them blocks.
"""

from __future__ import annotations

import asyncio
import json
import random
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from agentix._client import Session
from agentix.runtime.client._greeting import Door, parse_map, parse_open, poll_open, upgrade
from agentix.runtime.client._wire import HandshakeError, HttpStatus
from agentix.runtime.client.errors import make_error

# The largest message that a 0.1.5 server accepts; above, it drops the connection.
_LEGACY_SEND_MAX = 1_000_000

CALL_ID: ContextVar[str | None] = ContextVar("agentix_client_call_id", default=None)


@dataclass(frozen=True, slots=True)
class Reconnect:
    """How a client comes back after a lost connection.

    Tries again after `delay` seconds, then after twice that, up to `max_delay`; gives up after
    `window` seconds (None: as long as the server keeps the calls).
    """

    delay: float = 0.05
    max_delay: float = 2.0
    window: float | None = None


class _Refused(HandshakeError):
    """The server refuses permanently: another attempt would fail in the same way."""


class Link:
    """The connection of one client."""

    def __init__(
        self, door: Door, reconnect: Reconnect | None, connect_timeout: float, max_message: int
    ) -> None:
        self.session = Session(self)
        self._door = door
        self._reconnect = reconnect
        self._connect_timeout = connect_timeout
        self._max_message = max_message
        self._task: asyncio.Task[None] | None = None
        self._greeting: asyncio.Queue[str | Exception] | None = None
        self._session_id: str | None = None
        self._resume_s = 0.0
        self._lost_at: float | None = None  # set while a connection with open calls is lost
        self._watch: asyncio.TimerHandle | None = None
        self._error: BaseException | None = None

    # ---- called by the session ----

    def wanted(self) -> None:
        """Called when a call needs a connection and there is none."""
        loop = asyncio.get_running_loop()
        if self.session.state == "closed":
            raise make_error(
                str(self._door.address),
                {"type": "RuntimeUnreachable", "message": "the client is closed"},
            )
        if self._task is None or self._task.done():
            self.session.loop = loop
            self._task = loop.create_task(self._connect())

    def packet(self, text: str) -> None:
        """Called for a packet that is not an event of a call."""
        if self._greeting is not None:
            self._greeting.put_nowait(text)
        elif text.startswith(("1", "41")):
            self.session.detach()
            self._forget()
            self.session.fail("RuntimeUnreachable", "the server ended the connection")

    def lost(self, reason: str) -> None:
        """Called when the connection is lost."""
        if self._greeting is not None:
            self._greeting.put_nowait(HandshakeError(reason))
            return
        self._stop_watch()
        loop = self.session.loop
        if self.session.open_calls == 0:
            return
        if self._session_id is None or self._reconnect is None:
            self.session.fail("ResultUnavailable", f"connection lost: {reason}", True)
        if self.session.open_calls > 0:
            self._lost_at = loop.time()
            self._task = loop.create_task(self._connect())

    def error(self, display_name: str, error: Any) -> BaseException:
        """The exception for an error map."""
        return make_error(display_name, error)

    def context_id(self) -> str | None:
        """The id that call_context() set, if any."""
        return CALL_ID.get()

    # ---- connecting ----

    async def ensure(self) -> Session:
        """Waits for the connection; raises RuntimeUnreachable."""
        while self.session.state != "open":
            self.wanted()
            assert self._task is not None
            await asyncio.shield(self._task)
            if self.session.state in ("detached", "closed"):
                raise make_error(
                    str(self._door.address),
                    {"type": "RuntimeUnreachable", "message": str(self._error)},
                )
            if self.session.state == "resuming":
                await asyncio.sleep(0.001)
        return self.session

    async def _connect(self) -> None:
        delay = self._reconnect.delay if self._reconnect else 0.0
        while True:
            try:
                async with asyncio.timeout(self._connect_timeout):
                    await self._attempt()
                self._lost_at = None
                return
            except (OSError, ValueError) as e:
                self._error = e
                if not self._may_retry(e):
                    self._give_up(e)
                    return
            except BaseException as e:
                self._give_up(e)
                raise
            assert self._reconnect is not None
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))
            delay = min(delay * 2, self._reconnect.max_delay)

    def _may_retry(self, error: Exception) -> bool:
        """True if calls are at the server; calls that were never sent fail at once."""
        if self._reconnect is None or self._lost_at is None or isinstance(error, _Refused):
            return False
        window = self._reconnect.window
        away = asyncio.get_running_loop().time() - self._lost_at
        return self.session.open_calls > 0 and away < (self._resume_s if window is None else window)

    def _give_up(self, error: BaseException) -> None:
        self._lost_at = None
        why = str(error) or type(error).__name__
        message = f"connect to {self._door.address}: {why}"
        self.session.fail("ResultUnavailable", f"connection lost; {message}", True)
        self.session.fail("RuntimeUnreachable", message)

    async def _attempt(self) -> None:
        """One attempt to connect, until calls may be sent."""
        self._greeting = asyncio.Queue()
        try:
            opened = await self._open_websocket()
            self.session.send_text("40" + json.dumps({"agentix": self._offer()}))
            answer = await self._answer()
            self._greeting = None
            self._begin(answer)
            self._start_watch(opened)
        except BaseException:
            self._greeting = None
            self.session.detach()
            raise

    async def _open_websocket(self) -> dict[str, Any]:
        wire = await self._door.knock()
        polled = None
        try:
            try:
                await upgrade(self._door, wire)
            except HttpStatus as e:
                if e.status in (401, 403):
                    raise _Refused(str(e)) from None
                wire.close()  # a server or proxy that requires polling first
                wire = await self._door.knock()
                polled = await poll_open(self._door, wire)
                await upgrade(self._door, wire, polled["sid"])
            wire.hand_over(self.session, self._max_message, self._wire_lost)
        except BaseException:
            wire.close()
            raise
        if polled is None:
            return parse_open(await self._next_packet())
        self.session.send_text("2probe")
        await self._expect("3probe")
        self.session.send_text("5")
        return polled

    def _wire_lost(self, reason: str) -> None:
        if self.session.state not in ("detached", "closed"):
            self.session.detach()
            self.lost(reason)

    def _offer(self) -> dict[str, Any]:
        offer: dict[str, Any] = {"proto": 1, "max_message": self._max_message}
        if self._session_id is not None:
            offer["session"] = self._session_id
        return offer

    async def _next_packet(self) -> str:
        assert self._greeting is not None
        packet = await self._greeting.get()
        if isinstance(packet, Exception):
            raise packet
        return packet

    async def _expect(self, text: str) -> None:
        packet = await self._next_packet()
        if packet != text:
            raise HandshakeError(f"{packet[:80]!r} where {text!r} was expected")

    async def _answer(self) -> dict[str, Any]:
        """The server's answer to CONNECT; raises if it refuses."""
        while True:
            packet = await self._next_packet()
            if packet.startswith("40"):
                found = parse_map(packet[2:])
                if found is None:
                    raise HandshakeError(f"malformed CONNECT: {packet[:80]!r}")
                return found
            if packet.startswith("44"):
                raise _Refused(f"the server refused the connection: {packet[2:200]}")
            if packet.startswith(("1", "41")):
                raise _Refused("the server ended the connection")

    def _begin(self, answer: dict[str, Any]) -> None:
        ours = answer.get("agentix")
        if not isinstance(ours, dict):  # 0.1.5: nothing survives a connection
            self._forget()
            self.session.fail("ResultUnavailable", "the server cannot resume calls", True)
            self.session.open(0, _LEGACY_SEND_MAX, False)
            return
        resumed = bool(ours.get("resumed")) and ours.get("session") == self._session_id
        self._session_id = str(ours.get("session"))
        self._resume_s = float(ours.get("resume_ms", 0)) / 1000
        if not resumed:
            self.session.fail(
                "ResultUnavailable", "connection lost, and the server no longer has the call", True
            )
        self.session.open(1, int(ours.get("max_message", _LEGACY_SEND_MAX)), resumed)

    def _forget(self) -> None:
        self._session_id = None
        self._stop_watch()

    # ---- signs of life ----

    def _start_watch(self, opened: dict[str, Any]) -> None:
        """The server sends pings; without a byte for both intervals the connection is lost."""
        quiet = (opened.get("pingInterval", 25000) + opened.get("pingTimeout", 20000)) / 1000
        loop = asyncio.get_running_loop()

        def check(reads: int) -> None:
            if self.session.reads == reads:
                self.session.detach()
                self.lost(f"no sign of life for {quiet:g} s")
            else:
                self._watch = loop.call_later(quiet, check, self.session.reads)

        self._stop_watch()
        self._watch = loop.call_later(quiet, check, self.session.reads)

    def _stop_watch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    async def close(self) -> None:
        """Ends the connection; open calls fail."""
        self._stop_watch()
        self.session.fail("RuntimeUnreachable", "the client was closed")
        self.session.close()
        task = self._task
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait([task])
