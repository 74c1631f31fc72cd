"""A byte stream to the server, until the C session takes it over.

Plain sockets are handed over as descriptors; TLS stays an asyncio transport, whose bytes are fed to
the session.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

    from agentix._client import Session
    from agentix.runtime.client._address import Address, Proxy

# More than any head that a server sends.
_HEAD_MAX = 65536


class HandshakeError(ConnectionError):
    """The other end answered, but not as a runtime does."""


class HttpStatus(HandshakeError):
    """The other end refused the request."""

    def __init__(self, status: int, reason: str, body: str = "") -> None:
        detail = f": {body.strip()[:200]}" if body.strip() else ""
        super().__init__(f"HTTP {status} {reason}{detail}")
        self.status = status


class Response:
    """Head of an HTTP answer."""

    def __init__(self, head: bytes) -> None:
        lines = head.decode("latin-1").split("\r\n")
        version, _, rest = lines[0].partition(" ")
        status, _, self.reason = rest.partition(" ")
        if not version.startswith("HTTP/1.") or not status.isdigit():
            raise HandshakeError(f"not an HTTP server: {lines[0][:80]!r}")
        self.status = int(status)
        self.headers: dict[str, str] = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()


class Wire:
    """A connected stream. `rest` are bytes that came after what was read."""

    rest: bytes = b""

    async def send(self, data: bytes) -> None:
        raise NotImplementedError

    async def receive(self) -> bytes:
        """Some bytes; none at the end."""
        raise NotImplementedError

    def hand_over(self, session: Session, max_message: int, lost: Callable[[str], None]) -> None:
        """From now on the session reads and writes."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    async def _more(self) -> None:
        data = await self.receive()
        if not data:
            raise HandshakeError("the server closed the connection")
        self.rest += data

    async def read_head(self) -> Response:
        """The head of an HTTP answer."""
        while (end := self.rest.find(b"\r\n\r\n")) < 0:
            if len(self.rest) > _HEAD_MAX:
                raise HandshakeError("the head of the answer is too long")
            await self._more()
        head, self.rest = self.rest[:end], self.rest[end + 4 :]
        return Response(head)

    async def _read_exactly(self, n: int) -> bytes:
        while len(self.rest) < n:
            await self._more()
        data, self.rest = self.rest[:n], self.rest[n:]
        return data

    async def _read_line(self) -> bytes:
        while (end := self.rest.find(b"\r\n")) < 0:
            await self._more()
        line, self.rest = self.rest[:end], self.rest[end + 2 :]
        return line

    async def read_body(self, response: Response) -> bytes:
        """The body that belongs to a head."""
        if "chunked" in response.headers.get("transfer-encoding", "").lower():
            body = b""
            while size := int((await self._read_line()).split(b";")[0], 16):
                body += await self._read_exactly(size)
                await self._read_line()
            await self._read_line()
            return body
        length = response.headers.get("content-length")
        if length is not None:
            return await self._read_exactly(int(length))
        while data := await self.receive():
            self.rest += data
        body, self.rest = self.rest, b""
        return body


class SocketWire(Wire):
    """TCP or a Unix socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock: socket.socket | None = sock

    @property
    def _live(self) -> socket.socket:
        assert self._sock is not None
        return self._sock

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._live, data)

    async def receive(self) -> bytes:
        return await asyncio.get_running_loop().sock_recv(self._live, 65536)

    def take(self) -> socket.socket:
        """The socket: it is the caller's now."""
        sock, self._sock = self._live, None
        return sock

    def hand_over(self, session: Session, max_message: int, lost: Callable[[str], None]) -> None:
        loop = asyncio.get_running_loop()
        session.attach_fd(loop, self._live.fileno(), max_message)
        self.take().detach()
        if self.rest:  # outside this task: what it completes runs at once
            loop.call_soon(session.feed, self.rest)

    def close(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None


class TlsWire(Wire, asyncio.Protocol):
    """TLS through asyncio's transport."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._session: Session | None = None
        self._lost: Callable[[str], None] | None = None
        self._arrived = asyncio.Event()
        self._ended = False
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._session is not None:
            self._session.feed(data)
        else:
            self._buffer += data
            self._arrived.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._arrived.set()
        if self._lost is not None:
            self._lost(str(exc) if exc else "the server closed the connection")

    async def send(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    async def receive(self) -> bytes:
        while not self._buffer and not self._ended:
            self._arrived.clear()
            await self._arrived.wait()
        data, self._buffer = self._buffer, b""
        return data

    def hand_over(self, session: Session, max_message: int, lost: Callable[[str], None]) -> None:
        loop = asyncio.get_running_loop()
        session.attach_transport(loop, self._transport, max_message)
        early = self.rest + self._buffer
        self._session, self._lost = session, lost
        if early:
            loop.call_soon(session.feed, early)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


async def _resolve(host: str, port: int) -> list[tuple[int, tuple[str, int]]]:
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [(family, (str(addr[0]), int(addr[1]))) for family, _, _, _, addr in infos]
    return [(socket.AF_INET6 if ip.version == 6 else socket.AF_INET, (host, port))]


def _notice_death(sock: socket.socket) -> None:
    """Detects a dead host after 40 s of silence, or 30 s without acknowledgement."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 20)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000)


async def _connect_socket(family: int, target: str | tuple[str, int]) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        if family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _notice_death(sock)
        await asyncio.get_running_loop().sock_connect(sock, target)
    except BaseException:
        sock.close()
        raise
    return sock


async def _connect_tcp(host: str, port: int) -> socket.socket:
    failure: OSError = ConnectionError(f"no address for {host!r}")
    for family, target in await _resolve(host, port):
        try:
            return await _connect_socket(family, target)
        except OSError as e:
            failure = e
    raise failure


async def _through_proxy(proxy: Proxy, address: Address) -> SocketWire:
    wire = SocketWire(await _connect_tcp(proxy.host, proxy.port))
    try:
        host = f"[{address.host}]" if ":" in address.host else address.host
        target = f"{host}:{address.port}"
        head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
        if proxy.authorization:
            head += f"Proxy-Authorization: {proxy.authorization}\r\n"
        await wire.send(head.encode() + b"\r\n")
        response = await wire.read_head()
        if response.status != 200:
            raise HttpStatus(response.status, f"{response.reason} (proxy {proxy.host})")
    except BaseException:
        wire.close()
        raise
    return wire


async def open_wire(address: Address, proxy: Proxy | None, context: ssl.SSLContext | None) -> Wire:
    """A connected stream to the server."""
    if address.unix_path:
        return SocketWire(await _connect_socket(socket.AF_UNIX, address.unix_path))
    if proxy is not None:
        plain = await _through_proxy(proxy, address)
    else:
        plain = SocketWire(await _connect_tcp(address.host, address.port))
    if not address.tls:
        return plain
    sock = plain.take()
    if context is None:
        import ssl

        context = ssl.create_default_context()
    try:
        _, wire = await asyncio.get_running_loop().create_connection(
            TlsWire, sock=sock, ssl=context, server_hostname=address.host
        )
    except BaseException:
        sock.close()
        raise
    return wire
