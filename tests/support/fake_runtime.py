"""A runtime for client tests, whose every byte the test decides: it accepts connections, does the
handshakes, reads events and sends events. It does nothing by itself.
"""

import asyncio
import base64
import contextlib
import functools
import hashlib
import json
import os
import socket
import struct
import tempfile

import msgpack

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
PATIENCE_S = 60
LIMIT_S = 120


def scenario(test):
    """Runs an async test with a time limit, so that a hang is a failure."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        async def limited():
            async with asyncio.timeout(LIMIT_S):
                await test(*args, **kwargs)

        asyncio.run(limited())

    return run


class Peer:
    """The server's end of one connection."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.path = ""
        self.headers = {}
        self.auth = {}

    async def read_head(self):
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        self.path = first.split(" ")[1]
        self.headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
        return first

    async def refuse(self, status, body=b"{}"):
        head = f"HTTP/1.1 {status} No\r\nContent-Length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)
        await self.writer.drain()

    def switch(self):
        key = self.headers["sec-websocket-key"].encode()
        digest = hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
        accept = base64.b64encode(digest).decode()
        self.writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
        )

    def open_packet(self, **more):
        fields = {"sid": "abc", "upgrades": [], "pingInterval": 25000, "pingTimeout": 300000}
        return "0" + json.dumps({**fields, "maxPayload": 1000000, **more})

    async def greet(self, *, session="s1", resumed=False, resume_ms=60000, limit=1 << 28, **opened):
        """Does the whole handshake as our server does."""
        await self.read_head()
        self.switch()
        self.text(self.open_packet(**opened))
        await self.take_connect()
        ours = {"proto": 1, "session": session, "resumed": resumed, "resume_ms": resume_ms}
        self.text("40" + json.dumps({"sid": "x", "agentix": {**ours, "max_message": limit}}))
        return self

    async def greet_legacy(self):
        """Does the handshake as a server of 0.1.5 does."""
        await self.read_head()
        self.switch()
        self.text(self.open_packet())
        await self.take_connect()
        self.text('40{"sid":"x"}')
        return self

    async def take_connect(self):
        text = await self.read_text()
        assert text.startswith("40"), text
        self.auth = json.loads(text[2:]).get("agentix", {})

    # ---- frames ----

    def frame(self, opcode, data, *, fin=True):
        head = bytes([(0x80 if fin else 0) | opcode])
        if len(data) < 126:
            head += bytes([len(data)])
        elif len(data) < 65536:
            head += b"\x7e" + struct.pack(">H", len(data))
        else:
            head += b"\x7f" + struct.pack(">Q", len(data))
        self.writer.write(head + data)

    def text(self, text):
        self.frame(TEXT, text.encode())

    async def read_frame(self):
        async with asyncio.timeout(PATIENCE_S):
            first, second = await self.reader.readexactly(2)
            assert second & 0x80, "a client masks its frames"
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack(">H", await self.reader.readexactly(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", await self.reader.readexactly(8))
            key = await self.reader.readexactly(4)
            data = await self.reader.readexactly(size)
        repeated = (key * (size // 4 + 1))[:size]
        plain = int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")
        return first & 15, plain.to_bytes(size, "big")

    async def read_text(self):
        opcode, data = await self.read_frame()
        assert opcode == TEXT, (opcode, data)
        return data.decode()

    # ---- events ----

    def send(self, event, **fields):
        """Sends one event with its attachment."""
        self.text(f'451-["{event}",{{"_placeholder":true,"num":0}}]')
        self.frame(BINARY, msgpack.packb(fields))

    async def next(self):
        """Reads the next event; returns its name and its fields."""
        header = await self.read_text()
        assert header.startswith("451-["), header
        opcode, data = await self.read_frame()
        assert opcode == BINARY
        return json.loads(header[4:])[0], msgpack.unpackb(data, strict_map_key=False)

    async def expect(self, event):
        """The fields of the next event that is not an acknowledgement; it must have this name."""
        while True:
            name, fields = await self.next()
            if name == event:
                return fields
            assert name == "ack", f"{name} {fields} where {event} was expected"

    async def expect_ack(self, call_id, seq):
        """Waits until the client has acknowledged up to this number."""
        while True:
            calls = (await self.next_ack())["calls"]
            if dict(zip(calls[::2], calls[1::2], strict=True)).get(call_id) == seq:
                return

    async def next_ack(self):
        while True:
            name, fields = await self.next()
            if name == "ack":
                return fields

    def answer(self, fields, value, seq=1):
        self.send("unary:result", call_id=fields["call_id"], value=value, seq=seq)

    def drop(self):
        """Ends the connection as a broken network would."""
        self.writer.transport.abort()

    async def gone(self):
        """Waits until the client has closed."""
        async with asyncio.timeout(PATIENCE_S):
            with contextlib.suppress(ConnectionResetError):  # the client has not read all our bytes
                while await self.reader.read(65536):
                    pass


def _resolve(host, *rest, **named):
    """Makes localhost this machine, also without an entry in /etc/hosts."""
    return _getaddrinfo("127.0.0.1" if host == "localhost" else host, *rest, **named)


_getaddrinfo, socket.getaddrinfo = socket.getaddrinfo, _resolve


class FakeRuntime:
    """Listens on a Unix socket (or TCP, with or without TLS); `accept()` returns connections."""

    def __init__(self, *, tcp=False, ssl=None):
        self._tcp, self._ssl = tcp, ssl
        self._peers = asyncio.Queue()
        self._all = []

    async def __aenter__(self):
        if self._tcp:
            self._server = await asyncio.start_server(
                self._connected, "127.0.0.1", 0, ssl=self._ssl
            )
            port = self._server.sockets[0].getsockname()[1]
            self.port = port
            self.url = f"{'https' if self._ssl else 'http'}://localhost:{port}"
        else:
            self._dir = tempfile.TemporaryDirectory()
            path = os.path.join(self._dir.name, "s")
            self._server = await asyncio.start_unix_server(self._connected, path)
            self.url = f"unix://{path}"
        return self

    async def __aexit__(self, *exc):
        self._server.close()
        for peer in self._all:
            peer.drop()
        if not self._tcp:
            self._dir.cleanup()

    def _connected(self, reader, writer):
        peer = Peer(reader, writer)
        self._all.append(peer)
        self._peers.put_nowait(peer)

    async def accept(self):
        async with asyncio.timeout(PATIENCE_S):
            return await self._peers.get()

    async def greet(self, **options):
        return await (await self.accept()).greet(**options)
