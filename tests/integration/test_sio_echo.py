"""python-socketio, plain HTTP and hand-made WebSocket frames against examples/sio_echo.

These are tests of runtime/{conn,http_server,eio_*}.c and of the codecs below them.
"""

import asyncio
import json
import os
import re
import socket
import struct
import subprocess
import time

import pytest
import socketio

TIMEOUT_S = 60
MIB = 1 << 20


class Server:
    """A running sio_echo; its log has one line for each session's beginning and end."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [os.environ["SIO_ECHO"], "0", *map(str, arguments)], stdout=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        self.port = int(re.fullmatch(r"listening at 127\.0\.0\.1:(\d+)\n", line)[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def line(self):
        """The next line of the log."""
        return self.process.stdout.readline()

    def stop(self):
        """SIGTERM; exit status 0, or a handle or memory was left behind."""
        self.process.terminate()
        assert self.process.wait(TIMEOUT_S) == 0
        self.process.stdout.close()


@pytest.fixture(name="start")
def fixture_start():
    servers = []

    def start(*arguments):
        servers.append(Server(*arguments))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


class Raw:
    """One TCP connection."""

    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.port), TIMEOUT_S)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def request(self, target, method="GET", body=b"", headers=()):
        """Sends a request and returns status, headers (lower case) and body of its answer."""
        lines = [f"{method} {target} HTTP/1.1", "Host: h", *headers]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return self.answer(method)

    def answer(self, method="GET"):
        """Reads one answer."""
        status = int(self.file.readline().split()[1])
        headers = {}
        while (line := self.file.readline()) != b"\r\n":
            name, value = line.decode().split(":", 1)
            headers[name.lower()] = value.strip()
        length = 0 if method == "HEAD" or status == 101 else int(headers["content-length"])
        return status, headers, self.file.read(length)

    def websocket(self, query):
        """Requests a WebSocket; returns the status."""
        return self.request(
            f"/socket.io/?transport=websocket&{query}",
            headers=[
                "Upgrade: websocket",
                "Connection: Upgrade",
                "Sec-WebSocket-Version: 13",
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            ],
        )[0]

    def send(self, payload, opcode=1, announce=None):
        """Sends a masked frame (the mask is zero); `announce` is a wrong length."""
        payload = payload.encode() if isinstance(payload, str) else payload
        length = len(payload) if announce is None else announce
        head = bytes([0x80 | opcode])
        if length < 126:
            head += bytes([0x80 | length])
        else:
            head += bytes([0x80 | 127]) + struct.pack(">Q", length)
        self.socket.sendall(head + bytes(4) + payload)

    def receive(self):
        """The next frame: opcode and payload."""
        first, length = self.file.read(2)
        if length == 126:
            (length,) = struct.unpack(">H", self.file.read(2))
        elif length == 127:
            (length,) = struct.unpack(">Q", self.file.read(8))
        return first & 15, self.file.read(length)

    def at_end(self):
        """True if the server has closed the connection."""
        return self.file.read() == b""


def handshake(raw):
    """Begins a polling session; returns its sid."""
    status, headers, body = raw.request("/socket.io/?transport=polling&EIO=4&t=1.5")
    assert status == 200
    assert headers["content-type"] == "text/plain; charset=UTF-8"
    assert body[:1] == b"0"
    return json.loads(body[1:])["sid"]


async def exchange(url, transports, count, size):
    client = socketio.AsyncClient(reconnection=False)
    await client.connect(url, transports=transports)
    try:
        for _ in range(count):
            data = os.urandom(size)
            summary, echo = await client.call("echo", data, timeout=TIMEOUT_S)
            assert summary["bytes"] == size
            assert echo == data
        assert await client.call("plain", ("é", {"a": [1, None]}), timeout=TIMEOUT_S)
        return client.transport()
    finally:
        await client.disconnect()


@pytest.mark.parametrize(
    ("transports", "used"),
    [(None, "websocket"), (["websocket"], "websocket"), (["polling"], "polling")],
)
def test_python_socketio_gets_its_bytes_back(start, transports, used):
    server = start()
    assert asyncio.run(exchange(server.url, transports, 5, MIB)) == used
    assert asyncio.run(exchange(server.url, transports, 200, 100)) == used
    assert "opened" in server.line()
    assert "ended: the client" in server.line()


def test_many_acknowledged_events_at_once_over_polling_stay_within_16_packets_a_body(start):
    async def run(url):
        client = socketio.AsyncClient(reconnection=False)
        await client.connect(url, transports=["polling"])
        try:
            data = [os.urandom(50) for _ in range(8)]
            for _ in range(10):
                calls = [client.call("echo", d, timeout=TIMEOUT_S) for d in data]
                answers = await asyncio.gather(*calls)
                assert [echo for _, echo in answers] == data
        finally:
            await client.disconnect()

    asyncio.run(run(start().url))


def test_namespace_other_than_the_default_is_refused(start):
    async def run(url):
        client = socketio.AsyncClient(reconnection=False)
        with pytest.raises(socketio.exceptions.ConnectionError):
            await client.connect(url, namespaces=["/foo"])

    asyncio.run(run(start().url))


def test_engineio_errors_have_the_peers_bodies(start):
    cases = [
        ("GET", "/socket.io/?transport=polling&EIO=3", 400, b'"The client is using an unsupported '
         b'version of the Socket.IO or Engine.IO protocols"'),
        ("GET", "/socket.io/?transport=polling", 400, b'"The client is using an unsupported '
         b'version of the Socket.IO or Engine.IO protocols"'),
        ("GET", "/socket.io/?transport=smoke&EIO=4", 400, b'"Invalid transport"'),
        ("GET", "/socket.io/?EIO=4&sid=nobody", 400, b'"Invalid session nobody"'),
        ("POST", "/socket.io?EIO=4&sid=nobody", 400, b'"Invalid session nobody"'),
        ("GET", "/socket.io/?EIO=4&transport=websocket", 400, b'"Invalid websocket upgrade"'),
        ("OPTIONS", "/socket.io/?EIO=4", 200, b"OK"),
        ("PUT", "/socket.io/?EIO=4", 405, b"Method Not Found"),
        ("GET", "/nowhere", 404, b'{"detail":"Not Found"}'),
    ]  # fmt: skip
    with Raw(start()) as raw:  # all on one connection
        for method, target, status, body in cases:
            headers = ["Origin: http://there"]
            got_status, got_headers, got_body = raw.request(target, method, headers=headers)
            assert (got_status, got_body) == (status, body), target
            if "socket.io" in target:
                assert got_headers["content-type"] == "text/plain"
            assert not [name for name in got_headers if name.startswith("access-control-")]


def test_upgrade_on_the_same_connection_moves_what_was_queued(start):
    with Raw(start()) as raw:
        sid = handshake(raw)
        assert raw.request(f"/socket.io/?EIO=4&sid={sid}", "POST", b"40{}")[2] == b"OK"
        assert raw.websocket(f"EIO=4&sid={sid}") == 101
        raw.send("2probe")
        assert raw.receive() == (1, b"3probe")
        raw.send("5")
        assert raw.receive() == (1, b'40{"sid":"' + sid.encode() + b'"}')
        raw.send("\x8a\x00", opcode=9)  # a WebSocket ping
        assert raw.receive()[0] == 10
        raw.send(struct.pack(">H", 1000), opcode=8)
        assert raw.receive()[:1] == (8,)


def test_waiting_get_is_answered_by_a_noop_when_the_upgrade_begins(start):
    server = start()
    with Raw(server) as polling, Raw(server) as upgrade:
        sid = handshake(polling)
        polling.socket.sendall(
            f"GET /socket.io/?EIO=4&sid={sid} HTTP/1.1\r\nHost: h\r\n\r\n".encode()
        )
        assert upgrade.websocket(f"EIO=4&sid={sid}") == 101
        upgrade.send("2probe")
        assert upgrade.receive() == (1, b"3probe")
        assert polling.answer()[2] == b"6"


def test_upgrade_that_fails_leaves_the_polling_session_alive(start):
    server = start()
    with Raw(server) as polling:
        sid = handshake(polling)
        with Raw(server) as upgrade:
            assert upgrade.websocket(f"EIO=4&sid={sid}") == 101
            upgrade.send("4nonsense")
            assert upgrade.receive()[0] == 8
        assert polling.request(f"/socket.io/?EIO=4&sid={sid}", "POST", b"40")[2] == b"OK"
        assert polling.request(f"/socket.io/?EIO=4&sid={sid}")[2].startswith(b'40{"sid"')


def test_oversize_polling_request_is_400_and_drops_the_session(start):
    server = start(25000, 20000, 1000)
    with Raw(server) as raw:
        sid = handshake(raw)
        answer = raw.request(f"/socket.io/?EIO=4&sid={sid}", "POST", b"4" * 1001)
        assert (answer[0], answer[2]) == (400, b'"Bad Request"')
        assert raw.at_end()
    with Raw(server) as raw:
        assert raw.request(f"/socket.io/?EIO=4&sid={sid}")[0] == 400


def test_oversize_message_is_closed_with_1009_before_its_bytes_come(start):
    server = start(25000, 20000, 1000)
    with Raw(server) as raw:
        assert raw.websocket("EIO=4") == 101
        assert raw.receive()[1].startswith(b'0{"sid"')
        raw.send(b"", opcode=2, announce=1 << 40)
        opcode, payload = raw.receive()
        assert (opcode, struct.unpack(">H", payload[:2])[0]) == (8, 1009)
        assert raw.at_end()
    assert "opened" in server.line()
    assert "too long" in server.line()


def test_malformed_polling_body_is_400_and_drops_the_session(start):
    server = start()
    with Raw(server) as raw:
        sid = handshake(raw)
        answer = raw.request(f"/socket.io/?EIO=4&sid={sid}", "POST", b"xyz")
        assert (answer[0], answer[2]) == (400, b'"Bad Request"')
        assert raw.request(f"/socket.io/?EIO=4&sid={sid}")[0] == 400


def test_client_that_answers_no_ping_is_dropped_and_one_that_does_is_kept(start):
    server = start(100, 5000)
    began = time.monotonic()
    with Raw(server) as silent, Raw(server) as lively:
        for raw in (silent, lively):
            assert raw.websocket("EIO=4") == 101
            assert raw.receive()[1].startswith(b"0{")
        for _ in range(6):
            assert lively.receive() == (1, b"2")
            lively.send("3")
        assert time.monotonic() - began > 0.5
        assert silent.receive() == (1, b"2")
        assert silent.receive()[0] == 8
    assert "opened" in server.line()
    assert "opened" in server.line()
    assert "ping timeout" in server.line()


def test_polling_client_gets_its_pings(start):
    with Raw(start(100, 60000)) as raw:
        sid = handshake(raw)
        for _ in range(3):
            assert raw.request(f"/socket.io/?EIO=4&sid={sid}")[2] == b"2"
            assert raw.request(f"/socket.io/?EIO=4&sid={sid}", "POST", b"3")[2] == b"OK"


def test_pipelined_requests_are_answered_in_order_also_behind_a_waiting_one(start):
    with Raw(start(100, 60000)) as raw:
        sid = handshake(raw)
        raw.socket.sendall(
            f"GET /socket.io/?EIO=4&sid={sid} HTTP/1.1\r\nHost: h\r\n\r\n"
            "GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n".encode()
        )
        assert raw.answer()[2] == b"2"
        assert raw.answer()[0] == 404
        assert raw.answer()[0] == 404


def test_bad_requests_are_refused_with_the_reason_and_closed(start):
    server = start()
    for text, status in [
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: h\nA: b\r\n\r\n", 400),
        (b"GET / HTTP/3.0\r\nHost: h\r\n\r\n", 505),
        (b"GET /" + b"a" * 70000, 431),
    ]:
        with Raw(server) as raw:
            raw.socket.sendall(text)
            got, headers, body = raw.answer()
            assert got == status
            assert headers["connection"] == "close"
            assert json.loads(body)["detail"].startswith("http: ")
            assert raw.at_end()


def test_server_that_stops_closes_its_clients_with_1012(start):
    server = start()
    with Raw(server) as raw:
        assert raw.websocket("EIO=4") == 101
        assert raw.receive()[1].startswith(b"0{")
        server.process.terminate()
        opcode, payload = raw.receive()
        assert (opcode, struct.unpack(">H", payload[:2])[0]) == (8, 1012)
        assert raw.at_end()
    assert server.process.wait(TIMEOUT_S) == 0
