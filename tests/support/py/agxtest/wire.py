"""A client on plain sockets: HTTP/1.1, Engine.IO v4, Socket.IO v5, and protocol 1 on top of them.

It does one step at a time, and only on request, so that a test decides what is sent and read when,
and when the connection breaks.
"""

import base64
import json
import os
import socket
import struct

import msgpack

TIMEOUT_S = 60
UPGRADE = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)
TERMINAL = {"unary:result", "unary:error", "stream:end", "stream:error", "bidi:end", "bidi:error"}


class Closed(Exception):
    """The server ended the connection; `code` is the code of its close frame, or None."""

    def __init__(self, code=None, reason=""):
        super().__init__(f"closed with {code} {reason}")
        self.code = code
        self.reason = reason


def open_socket(server, unix=False, source=None):
    """A connection; over TCP from the address `source`."""
    if unix:
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(TIMEOUT_S)
        s.connect(str(server.socket_path))
        return s
    at = ("127.0.0.1", server.port)
    return socket.create_connection(at, TIMEOUT_S, source and (source, 0))


class Http:
    """One connection that speaks HTTP/1.1."""

    def __init__(self, server, unix=False, source=None):
        self.socket = open_socket(server, unix, source)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()

    def request(self, target, method="GET", body=None, headers=(), host="localhost"):
        """Sends a request and returns status, headers (lower case) and body of its answer."""
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *headers]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b""))
        return self.answer(method)

    def answer(self, method="GET"):
        line = self.file.readline()
        if not line:
            raise Closed()
        status = int(line.split()[1])
        headers = {}
        while (line := self.file.readline()) not in (b"\r\n", b""):
            name, value = line.decode().split(":", 1)
            headers[name.lower()] = value.strip()
        length = 0 if method == "HEAD" or status == 101 else int(headers["content-length"])
        return status, headers, self.file.read(length)


class Client(Http):
    """A WebSocket to /socket.io/, with the events of the remote call."""

    def __init__(
        self,
        server,
        unix=False,
        headers=(),
        auth=None,
        connect=True,
        query="",
        host="localhost",
        source=None,
    ):
        super().__init__(server, unix, source)
        target = f"/socket.io/?EIO=4&transport=websocket{query}"
        self.status, _, self.body = self.request(target, headers=[*UPGRADE, *headers], host=host)
        if self.status != 101:
            return
        kind, text = self.receive()
        assert (kind, text[:1]) == (1, b"0"), text
        self.open = json.loads(text[1:])
        self.hello = None
        self.number = 0
        if connect:
            self.connect(auth)

    # -- frames

    def frame(self, payload, opcode=1):
        payload = payload.encode() if isinstance(payload, str) else payload
        head = bytes([0x80 | opcode])
        if len(payload) < 126:
            head += bytes([0x80 | len(payload)])
        elif len(payload) < 65536:
            head += bytes([0x80 | 126]) + struct.pack(">H", len(payload))
        else:
            head += bytes([0x80 | 127]) + struct.pack(">Q", len(payload))
        return head + bytes(4) + payload

    def send(self, payload, opcode=1):
        self.socket.sendall(self.frame(payload, opcode))

    def receive(self):
        """The next message: opcode and payload."""
        while True:
            head = self.file.read(2)
            if len(head) < 2:
                raise Closed()
            opcode, length = head[0] & 15, head[1]
            if length == 126:
                (length,) = struct.unpack(">H", self.file.read(2))
            elif length == 127:
                (length,) = struct.unpack(">Q", self.file.read(8))
            payload = self.file.read(length)
            if len(payload) < length:
                raise Closed()
            if opcode == 8:
                raise Closed(struct.unpack(">H", payload[:2])[0], payload[2:].decode())
            if payload == b"2":
                self.send("3")
            else:
                return opcode, payload

    def cut(self):
        """Breaks the connection without a close; data on its way is lost."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    # -- Socket.IO

    def connect(self, auth=None, namespace=""):
        prefix = f"/{namespace}," if namespace else ""
        self.send(f"40{prefix}" + ("" if auth is None else json.dumps(auth)))
        _, text = self.receive()
        text = text.decode()
        if not text.startswith(f"40{prefix}"):
            raise AssertionError(text)
        answer = json.loads(text[2 + len(prefix) :])
        if not namespace:
            self.hello = answer.get("agentix")
        return answer

    def encode(self, event, payload):
        if not isinstance(payload, bytes):
            payload = msgpack.packb(payload)
        header = f'451-["{event}",{{"_placeholder":true,"num":0}}]'
        return self.frame(header) + self.frame(payload, 2)

    def emit(self, event, **payload):
        self.socket.sendall(self.encode(event, payload))

    def emit_raw(self, event, payload):
        self.socket.sendall(self.encode(event, payload))

    def event(self):
        """Reads the next event of `/`: its name and its payload."""
        _, text = self.receive()
        assert text.startswith(b"451-["), text[:200]
        name = json.loads(text[4:])[0]
        opcode, payload = self.receive()
        assert opcode == 2
        return name, msgpack.unpackb(payload, strict_map_key=False)

    def record(self):
        """Reads the next record of `/log`."""
        _, text = self.receive()
        assert text.startswith(b"42/log,"), text[:200]
        name, record = json.loads(text[7:])
        assert name == "record"
        return record

    # -- calls

    def start(self, target, *args, kind="unary", call_id=None, **fields):
        """Starts a call by reference; returns its call_id."""
        if call_id is None:
            self.number += 1
            call_id = f"c{self.number}"
        event = {"unary": "unary", "stream": "stream", "bidi": "bidi:start"}[kind]
        self.emit(event, call_id=call_id, target=target, args=list(args), kwargs={}, **fields)
        return call_id

    def call(self, target, *args, **fields):
        """Runs a unary call and returns ("result", value) or ("error", error)."""
        call_id = self.start(target, *args, **fields)
        name, payload = self.event()
        assert payload["call_id"] == call_id, (name, payload)
        kind = name.partition(":")[2]
        return kind, payload["value" if kind == "result" else "error"]

    def rest(self, call_id):
        """Reads the events of one call to its end: the values, and the terminal event."""
        values = []
        while True:
            name, payload = self.event()
            assert payload["call_id"] == call_id, (name, payload)
            if name == "credit":
                continue
            if name in TERMINAL and name != "unary:result":
                return values, name, payload.get("error")
            values.append(payload["value"])
            if name == "unary:result":
                return values, name, None


class Session(Client):
    """A client of protocol 1: it acknowledges and grants credit only on request."""

    def __init__(self, server, unix=False, session=None, max_message=None, token=None, **options):
        ours = {"proto": 1, "session": session, "max_message": max_message, "token": token}
        ours = {k: v for k, v in ours.items() if v is not None}
        super().__init__(server, unix, auth={"agentix": ours}, **options)

    def ack(self, *calls):
        self.emit("ack", calls=list(calls))

    def credit(self, call_id, n, size=1 << 40):
        self.emit("credit", call_id=call_id, n=n, bytes=size)

    def resume(self, *calls):
        """Sends `resume` and returns known and unknown."""
        self.emit("resume", calls=[list(c) for c in calls])
        name, payload = self.event()
        assert name == "resume:done", (name, payload)
        return dict(map(tuple, payload["known"])), payload["unknown"]


class Polling:
    """A session that stays on long polling."""

    source = None  # also for tests that do not call __init__

    def __init__(self, server, auth="{}", headers=(), connect=True, host="localhost", source=None):
        self.server = server
        self.source = source
        self.headers = headers
        self.host = host
        self.base = "/socket.io/?EIO=4&transport=polling"
        self.queue = []
        status, _, body = self.http(self.base)
        assert status == 200, body
        self.open = json.loads(body[1:])
        self.url = f"{self.base}&sid={self.open['sid']}"
        if connect:
            self.post(f"40{auth}".encode())
            text = self.packet()
            assert text.startswith(b"40"), text

    def http(self, target, method="GET", body=None):
        with Http(self.server, source=self.source) as h:
            return h.request(target, method, body, self.headers, self.host)

    def post(self, *packets):
        status, _, body = self.http(self.url, "POST", b"\x1e".join(packets))
        assert (status, body) == (200, b"OK"), (status, body)

    def packet(self):
        while not self.queue:
            status, _, body = self.http(self.url)
            assert status == 200, body
            packets = body.split(b"\x1e")
            assert len(packets) <= 16
            self.queue = [p for p in packets if p != b"6"]
        return self.queue.pop(0)

    @staticmethod
    def packets(event, payload):
        header = f'451-["{event}",{{"_placeholder":true,"num":0}}]'.encode()
        return header, b"b" + base64.b64encode(msgpack.packb(payload))

    def start(self, target, *args, kind="unary", call_id="p1"):
        event = {"unary": "unary", "stream": "stream", "bidi": "bidi:start"}[kind]
        payload = {"call_id": call_id, "target": target, "args": list(args), "kwargs": {}}
        self.post(*self.packets(event, payload))
        return call_id

    def event(self):
        text = self.packet()
        assert text.startswith(b"451-["), text[:200]
        return json.loads(text[4:])[0], msgpack.unpackb(base64.b64decode(self.packet()[1:]))


def random_id():
    return os.urandom(8).hex()
