#!/usr/bin/env python3
"""Records what a python-socketio client and server say, for tests/unit/codec/test_sio_recordings.c.

    build/venv/bin/python tests/recordings/make_sio.py

Each session is a real client and a real server on loopback; what passes the client's HTTP session
and its WebSocket is written to tests/recordings/sio/<session>.txt, one item a line, in the order
in which the client saw it:

    # comment
    client payload TEXT      the body of a polling request, the byte 0x1e in it as it is
    server payload TEXT      the body of its answer
    client text TEXT         a WebSocket text message (also: server text)
    client binary HEX        a WebSocket binary message (also: server binary)
    client means NAME xHEX   before the packets: the event that the application there sends and
                             its bytes in order; NAME is "-" for an acknowledgement
"""

import asyncio
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path

import aiohttp
import socketio
from aiohttp import web

OUT = Path(__file__).parent / "sio"
ALL_BYTES = bytes(range(256))
NAMESPACES = ["/", "/other", "/refused"]


def bytes_in(value) -> list[bytes]:
    """The bytes in a value, in the order in which Socket.IO numbers them."""
    if isinstance(value, bytes):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return []
    return [found for item in value for found in bytes_in(item)]


class Recording:
    """The lines of one session."""

    def __init__(self):
        self.lines: list[str] = []

    def add(self, side: str, data: str | bytes, kind: str = "text"):
        if isinstance(data, bytes):
            kind, data = "binary", data.hex()
        assert "\n" not in data
        self.lines.append(f"{side} {kind} {data}")

    def means(self, side: str, name: str, value):
        words = [name, *("x" + found.hex() for found in bytes_in(value))]
        self.lines.append(f"{side} means {' '.join(words)}")


class RecordingSocket:
    """An aiohttp client's WebSocket that keeps its messages."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse, rec: Recording):
        self.ws, self.rec = ws, rec

    def __getattr__(self, name):
        return getattr(self.ws, name)

    async def send_str(self, data: str):
        self.rec.add("client", data)
        await self.ws.send_str(data)

    async def send_bytes(self, data: bytes):
        self.rec.add("client", data)
        await self.ws.send_bytes(data)

    async def receive(self) -> aiohttp.WSMessage:
        message = await self.ws.receive()
        if isinstance(message.data, str | bytes):
            self.rec.add("server", message.data)
        return message


class RecordingSession:
    """An aiohttp client session that keeps the bodies of polling."""

    def __init__(self, session: aiohttp.ClientSession, rec: Recording):
        self.session, self.rec = session, rec

    def __getattr__(self, name):
        return getattr(self.session, name)

    async def get(self, url: str, **options) -> aiohttp.ClientResponse:
        response = await self.session.get(url, **options)
        body = await response.text()
        if response.status == 200:
            self.rec.add("server", body, "payload")
        return response

    async def post(self, url: str, **options) -> aiohttp.ClientResponse:
        self.rec.add("client", options["data"], "payload")
        return await self.session.post(url, **options)

    async def ws_connect(self, url: str, **options) -> RecordingSocket:
        return RecordingSocket(await self.session.ws_connect(url, **options), self.rec)


class Peers:
    """One client and one server of their own, for one session."""

    def __init__(self, session: aiohttp.ClientSession, rec: Recording, **engine):
        self.rec = rec
        self.server = socketio.AsyncServer(
            async_mode="aiohttp", namespaces=NAMESPACES, always_connect=False, **engine
        )
        self.client = socketio.AsyncClient(
            http_session=RecordingSession(session, rec), reconnection=False
        )
        self.url = ""
        self.sids: dict[str, str] = {}
        self.got = asyncio.Event()
        for namespace in NAMESPACES:
            self.server.on("connect", self.on_connect(namespace), namespace=namespace)
            self.server.on("echo", self.on_echo, namespace=namespace)
            self.client.on("note", self.on_note, namespace=namespace)
            self.client.on("ask", self.on_ask, namespace=namespace)

    def on_connect(self, namespace: str) -> Callable:
        def connect(sid: str, _environ: dict, _auth: object):
            if namespace == "/refused":
                raise socketio.exceptions.ConnectionRefusedError("not here", {"code": 7})
            self.sids[namespace] = sid

        return connect

    def on_echo(self, _sid: str, *args):
        self.rec.means("server", "-", args)
        return args

    def on_note(self, *_args):
        self.got.set()

    def on_ask(self, *args):
        self.rec.means("client", "-", args)
        return args

    async def connect(self, namespaces: tuple[str, ...] = ("/",), **options):
        await self.client.connect(self.url, namespaces=list(namespaces), wait_timeout=5, **options)

    async def call(self, *args, namespace: str = "/", name: str = "echo"):
        """An event of the client that the server acknowledges."""
        self.rec.means("client", name, args)
        await self.client.call(name, args, namespace=namespace, timeout=5)

    async def emit(self, *args, name: str = "unheard"):
        """An event of the client that asks for nothing; the call after it shows that it came."""
        self.rec.means("client", name, args)
        await self.client.emit(name, args)
        await self.call()

    async def note(self, *args, namespace: str = "/", name: str = "note"):
        """An event of the server."""
        self.got.clear()
        self.rec.means("server", name, args)
        await self.server.emit(name, args, to=self.sids[namespace], namespace=namespace)
        await asyncio.wait_for(self.got.wait(), 5)

    async def ask(self, *args):
        """An event of the server that the client acknowledges."""
        self.rec.means("server", "ask", args)
        await self.server.call("ask", args, to=self.sids["/"], timeout=5)


async def connect(p: Peers):
    await p.connect()


async def connect_auth(p: Peers):
    await p.connect(auth={"token": "s3cret \u00e9", "limit": 4 << 20})


async def connect_websocket(p: Peers):
    await p.connect(transports=["websocket"])
    await p.emit(b"direct")


async def connect_error(p: Peers):
    await p.connect(namespaces=("/", "/refused", "/unknown"), wait=False)
    await asyncio.sleep(0.3)


async def namespace_other(p: Peers):
    await p.connect(namespaces=("/", "/other"))
    await p.call("there", namespace="/other")
    await p.call(b"bytes there", namespace="/other")
    await p.note({"back": b"\x00"}, namespace="/other")


async def event(p: Peers):
    await p.connect()
    await p.emit("text", 1, -2.5e-7, True, None, {"a": [{}, []]}, name="several")
    await p.emit(name="nothing")
    await p.emit('\u00e9\U0001f600 "quoted"\\ \n\x1e\u2028', name='n\u00e4me"x"')
    await p.note("from the server", [1, 2])


async def event_ack(p: Peers):
    await p.connect()
    for i in range(12):
        await p.call(i)
    await p.ask("and you?")


async def binary_one(p: Peers):
    await p.connect()
    await p.emit(ALL_BYTES, name="unary")
    await p.emit(b"", name="empty")
    await p.note(b"\x82\xa7call_id")


async def binary_two(p: Peers):
    await p.connect()
    await p.emit(b"first", b"second")
    await p.emit({"deep": [{"er": b"one"}, "text", {"est": {"x": b"two"}}]}, 3)
    await p.emit(*(bytes([i]) for i in range(12)), name="twelve")
    await p.note([b"a", [b"b"]], b"c")


async def binary_ack(p: Peers):
    await p.connect()
    await p.call(b"there and back")
    await p.call({"x": b"1"}, [b"2", "3"])
    await p.ask(b"bytes of the server")


async def disconnect_by_server(p: Peers):
    await p.connect()
    await p.server.disconnect(p.sids["/"])
    await asyncio.sleep(0.3)


async def disconnect_namespace(p: Peers):
    await p.connect(namespaces=("/", "/other"))
    await p.server.disconnect(p.sids["/other"], namespace="/other")
    await p.call("still here")


async def polling(p: Peers):
    await p.connect(transports=["polling"])
    await p.emit("text \u00e9")
    await p.emit(ALL_BYTES, name="unary")
    await p.call(b"", [b"\xff\xfe"])
    await p.note(b"down")
    await p.ask("why?", b"because")


async def ping(p: Peers):
    await p.connect()
    await asyncio.sleep(2.5)


async def ping_polling(p: Peers):
    await p.connect(transports=["polling"])
    await asyncio.sleep(2.5)


SESSIONS: list[tuple[Callable[[Peers], Awaitable[None]], dict]] = [
    (connect, {}),
    (connect_auth, {}),
    (connect_websocket, {}),
    (connect_error, {}),
    (namespace_other, {}),
    (event, {}),
    (event_ack, {}),
    (binary_one, {}),
    (binary_two, {}),
    (binary_ack, {}),
    (disconnect_by_server, {}),
    (disconnect_namespace, {}),
    (polling, {}),
    (ping, {"ping_interval": 1, "ping_timeout": 1}),
    (ping_polling, {"ping_interval": 1, "ping_timeout": 1}),
]


async def record(run: Callable[[Peers], Awaitable[None]], engine: dict):
    rec = Recording()
    async with aiohttp.ClientSession() as session:
        peers = Peers(session, rec, **engine)
        app = web.Application()
        peers.server.attach(app)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        peers.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        await run(peers)
        await peers.client.disconnect()
        await asyncio.sleep(0.1)
        await runner.cleanup()
    title = f"# {run.__name__}: python-socketio {version('python-socketio')}"
    text = "\n".join([title, *rec.lines, ""])
    (OUT / f"{run.__name__}.txt").write_text(text, encoding="utf-8", newline="")
    print(f"{run.__name__}: {len(rec.lines)} lines")


async def main():
    OUT.mkdir(exist_ok=True)
    for run, engine in SESSIONS:
        await record(run, engine)


if __name__ == "__main__":
    asyncio.run(main())
