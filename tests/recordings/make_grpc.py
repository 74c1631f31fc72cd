#!/usr/bin/env python3
"""Records what grpcio's client and server say to each other, for
tests/unit/codec/test_grpc_recordings.c.

    build/venv/bin/python tests/recordings/make_grpc.py

Each call runs over a connection of its own through a proxy that keeps the bytes; the HTTP/2
frames are then taken apart and written to tests/recordings/grpc/<call>.txt, one item a line, in
the order of each direction:

    # comment
    client header NAME VALUE    a header as sent (also: server header, server trailer)
    client meant HEX            the bytes that the application gave for the header just before
    client data HEX             the payload of one DATA frame
    client messages N           how many messages the application sent
"""

import socket
import threading
from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import hpack
from hyperframe.frame import ContinuationFrame, DataFrame, Frame, HeadersFrame

OUT = Path(__file__).parent / "grpc"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_HEADER = 9
# Between two of its own, grpcio would send -bin values as raw bytes; a peer that does not know this
# gets base64.
# Small frames cut a long message into several.
OPTIONS = [
    ("grpc.http2.true_binary", 0),
    ("grpc.http2.max_frame_size", 16384),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
]

DETAILS = bytes(range(256))
MESSAGE = "naïve \"sandbox\" '数' is 100% gone\n\ttry again ~ 🙂"


@dataclass
class Call:
    """One call: what the client sends, how the server answers."""

    name: str
    requests: list[bytes]
    responses: list[bytes]
    timeout: float | None = None
    metadata: list[tuple[str, str | bytes]] = field(default_factory=list)
    initial: list[tuple[str, str | bytes]] = field(default_factory=list)
    trailing: list[tuple[str, str | bytes]] = field(default_factory=list)
    status: grpc.StatusCode = grpc.StatusCode.OK
    details: str = ""
    compression: grpc.Compression = grpc.Compression.NoCompression


CALLS = [
    Call("unary", [b"request"], [b"response"]),
    Call("empty", [b""], [b""]),
    Call("none", [], []),
    Call("stream", [b"%d" % i * i for i in range(8)], [b"", b"x", b"y" * 300, b""]),
    Call("large", [b"q" * 40000], [bytes(range(256)) * 160, b"after"]),
    Call(
        "metadata",
        [b"m"],
        [b"m"],
        metadata=[
            ("x-text", "plain, text"),
            ("x-a-bin", b"\x00"),
            ("x-b-bin", b"\x00\xff"),
            ("x-c-bin", b"abc"),
            ("x-c-bin", b"second"),
            ("x-empty-bin", b""),
            ("x-all-bin", DETAILS),
        ],
        initial=[("x-first-bin", b"\xfe\xed")],
        trailing=[("x-last-bin", b"f"), ("x-last", "text")],
    ),
    Call(
        "error",
        [b"e"],
        [],
        status=grpc.StatusCode.NOT_FOUND,
        details=MESSAGE,
        trailing=[("grpc-status-details-bin", DETAILS)],
    ),
    Call(
        "error_late",
        [b"e"],
        [b"one", b"two"],
        status=grpc.StatusCode.RESOURCE_EXHAUSTED,
        details="100%",
    ),
    Call("compressed", [b"\0" * 4000], [b"never read"], compression=grpc.Compression.Gzip),
    *(
        Call(f"timeout_{n}", [b"t"], [b"t"], timeout=seconds)
        for n, seconds in enumerate([0.5, 1, 5, 12.345, 60, 3600, 86400, 1e7])
    ),
]


class Recorder:
    """A TCP proxy for one connection that keeps what passes in each direction."""

    def __init__(self, target: int):
        self.client, self.server = bytearray(), bytearray()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.target = target
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        near, _ = self.listener.accept()
        self.listener.close()
        far = socket.create_connection(("127.0.0.1", self.target))
        back = threading.Thread(target=self.copy, args=(far, near, self.server))
        back.start()
        self.copy(near, far, self.client)
        back.join()
        near.close()
        far.close()

    @staticmethod
    def copy(source: socket.socket, sink: socket.socket, kept: bytearray):
        try:
            while data := source.recv(65536):
                kept += data
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the other side went first: the bytes so far are what we want


def handler_for(call: Call) -> grpc.RpcMethodHandler:
    """Bytes in, bytes out: no protobuf is needed."""

    def serve(requests, context: grpc.ServicerContext):
        for _ in requests:
            pass
        if call.initial:
            context.send_initial_metadata(call.initial)
        yield from call.responses
        context.set_trailing_metadata(call.trailing)
        context.set_code(call.status)
        context.set_details(call.details)

    return grpc.stream_stream_rpc_method_handler(serve)


def perform(call: Call, port: int):
    options = [*OPTIONS, ("grpc.default_authority", "localhost")]
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        stub = channel.stream_stream(f"/test.Recorded/{call.name}")
        answers = stub(
            iter(call.requests),
            timeout=call.timeout,
            metadata=call.metadata,
            compression=call.compression,
        )
        try:
            received = list(answers)
        except grpc.RpcError as e:
            assert e.code() == call.status, e
            assert e.details() == call.details, e
            return
        assert received == call.responses


def frames(data: bytes):
    while data:
        frame, size = Frame.parse_frame_header(memoryview(data)[:FRAME_HEADER])
        frame.parse_body(memoryview(data)[FRAME_HEADER : FRAME_HEADER + size])
        yield frame
        data = data[FRAME_HEADER + size :]


def items(data: bytes):
    """The ("header" or "trailer", name, value) and ("data", payload) of the stream in `data`."""
    decoder, block = hpack.Decoder(), b""
    for frame in frames(data):
        if isinstance(frame, DataFrame):
            yield "data", bytes(frame.data)
        if not isinstance(frame, (HeadersFrame, ContinuationFrame)):
            continue
        block += frame.data
        if "END_HEADERS" not in frame.flags:
            continue
        headers = decoder.decode(block, raw=True)
        block = b""
        kind = "trailer" if b"grpc-status" in dict(headers) else "header"
        for name, value in headers:
            yield kind, name.decode("ascii"), value.decode("ascii")


def lines(who: str, data: bytes, messages: list[bytes], meant: list[tuple[str, str | bytes]]):
    """One direction as text; everything in `meant` must have been sent."""
    left = [(name, value) for name, value in meant if isinstance(value, bytes)]
    for kind, *rest in items(data):
        if kind == "data":
            yield f"{who} data {rest[0].hex()}".rstrip()
            continue
        name, value = rest
        yield f"{who} {kind} {name} {value}".rstrip()
        if found := next((m for m in left if m[0] == name), None):
            left.remove(found)
            yield f"{who} meant {found[1].hex()}".rstrip()
    assert not left, f"never sent: {left}"
    yield f"{who} messages {len(messages)}"


def record(call: Call):
    server = grpc.server(futures.ThreadPoolExecutor(2), options=OPTIONS)
    handlers = {call.name: handler_for(call)}
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("test.Recorded", handlers)]
    )
    target = server.add_insecure_port("127.0.0.1:0")
    server.start()
    recorder = Recorder(target)
    perform(call, recorder.port)
    recorder.thread.join()
    server.stop(None).wait()

    assert recorder.client.startswith(PREFACE)
    answer = [*call.initial, *call.trailing]
    if call.details:
        answer.append(("grpc-message", call.details.encode()))
    text = [
        f"# grpcio {grpc.__version__}, made by tests/recordings/make_grpc.py, which explains "
        "the form",
        *lines("client", bytes(recorder.client[len(PREFACE) :]), call.requests, call.metadata),
        *lines("server", bytes(recorder.server), call.responses, answer),
    ]
    (OUT / f"{call.name}.txt").write_text("\n".join(text) + "\n")


def main():
    OUT.mkdir(exist_ok=True)
    for old in OUT.glob("*.txt"):
        old.unlink()
    for call in CALLS:
        record(call)
        print(f"recorded {call.name}")


if __name__ == "__main__":
    main()
