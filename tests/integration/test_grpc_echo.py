"""grpcio against examples/rpc_echo: tests of grpc/ and wire/ with a real peer."""

import contextlib
import os
import socket
import struct
import subprocess
import threading
import time

import grpc
import pytest
from agxtest.server import assert_grows_less, rss_kib
from google.protobuf import descriptor_pool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

TIMEOUT_S = 60
MIB = 1 << 20
GOAWAY, ENHANCE_YOUR_CALM = 7, 11
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


class Server:
    """A running rpc_echo; it prints a line for each call that ended before its answer."""

    def __init__(self, path, *arguments):
        self.path = str(path)
        self.process = subprocess.Popen(
            [os.environ["RPC_ECHO"], self.path, *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout.readline() == f"listening at {self.path}\n"

    def line(self):
        return self.process.stdout.readline()

    def stop(self):
        """SIGTERM; exit status 0, or a handle or memory was left behind."""
        self.process.terminate()
        assert self.process.wait(TIMEOUT_S) == 0
        self.process.stdout.close()


class Client:
    """A channel whose methods send and return bytes."""

    def __init__(self, server, **options):
        options = [(f"grpc.{key}", value) for key, value in options.items()]
        # Needs its own connection: channels to the same target would share one.
        options.append(("grpc.use_local_subchannel_pool", 1))
        self.channel = grpc.insecure_channel(f"unix://{server.path}", options=options)
        self.say = self.channel.unary_unary("/example.v1.Echo/Say")
        self.repeat = self.channel.unary_stream("/example.v1.Echo/Repeat")
        self.join = self.channel.stream_unary("/example.v1.Echo/Join")
        self.chat = self.channel.stream_stream("/example.v1.Echo/Chat")


@pytest.fixture(name="start")
def fixture_start(tmp_path):
    servers = []

    def start(*arguments):
        servers.append(Server(tmp_path / f"s{len(servers)}", *arguments))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.returncode is None:
            server.stop()


@pytest.fixture(name="server")
def fixture_server(start):
    return start()


@pytest.fixture(name="client")
def fixture_client(server):
    client = Client(server)
    yield client
    client.channel.close()


def status_of(call):
    """The error that a call ends with."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value


def test_unary_call_is_answered(client):
    assert client.say(b"hello", timeout=TIMEOUT_S) == b"hello"
    assert client.say(b"", timeout=TIMEOUT_S) == b""


def test_message_of_4_mib_goes_both_ways_and_one_byte_more_is_refused(server):
    client = Client(server, max_receive_message_length=-1, max_send_message_length=-1)
    large = os.urandom(4 * MIB)
    assert client.say(large, timeout=TIMEOUT_S) == large
    error = status_of(lambda: client.say(large + b"x", timeout=TIMEOUT_S))
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert error.details() == "received message larger than max (4194305 vs. 4194304)"
    assert client.say(b"on", timeout=TIMEOUT_S) == b"on"
    client.channel.close()


def test_error_has_code_message_details_and_trailers(client):
    metadata = [
        ("x-code", "5"),
        ("x-message", "no such thing: 100% gone"),
        ("x-details-bin", b"\x08\x05\x12\x00\xff"),
    ]
    error = status_of(lambda: client.say(b"x", metadata=metadata, timeout=TIMEOUT_S))
    assert error.code() == grpc.StatusCode.NOT_FOUND
    assert error.details() == "no such thing: 100% gone"
    trailers = dict(error.trailing_metadata())
    assert trailers["grpc-status-details-bin"] == b"\x08\x05\x12\x00\xff"
    assert trailers["x-trailer-bin"] == b"\x00\x01\x02"


def test_unary_error_comes_without_headers_of_its_own(client):
    call = client.say.future(b"x", metadata=[("x-code", "9")], timeout=TIMEOUT_S)
    assert call.exception().code() == grpc.StatusCode.FAILED_PRECONDITION
    assert call.initial_metadata() == ()


def test_unknown_method_is_unimplemented(client):
    error = status_of(lambda: client.channel.unary_unary("/no.Such/Method")(b""))
    assert error.code() == grpc.StatusCode.UNIMPLEMENTED


def test_compressed_request_is_unimplemented(client):
    error = status_of(
        lambda: client.say(b"x" * 10000, compression=grpc.Compression.Gzip, timeout=TIMEOUT_S)
    )
    assert error.code() == grpc.StatusCode.UNIMPLEMENTED


def test_deadline_ends_the_call_on_both_sides(server, client):
    assert client.say(b"connected", timeout=TIMEOUT_S) == b"connected"
    error = status_of(lambda: client.say(b"x", metadata=[("x-delay-ms", "60000")], timeout=10))
    assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert server.line() in ("ended DEADLINE_EXCEEDED\n", "ended CANCELLED\n")


def test_cancelled_call_is_over_for_its_handler(server, client):
    # Any of the calls that wait for a connection may be the first.
    assert client.say(b"connected", timeout=TIMEOUT_S) == b"connected"
    call = client.say.future(b"x", metadata=[("x-delay-ms", "60000")])
    assert client.say(b"behind it", timeout=TIMEOUT_S) == b"behind it"
    call.cancel()
    assert server.line() == "ended CANCELLED\n"


def test_stream_gives_all_messages(client):
    count = 10000
    stream = client.repeat(b"tick", metadata=[("x-count", str(count))], timeout=TIMEOUT_S)
    assert sum(message == b"tick" for message in stream) == count


def test_stream_cancelled_by_its_client_ends(server, client):
    stream = client.repeat(b"x" * 1000, metadata=[("x-count", "4000000000")])
    for _, message in zip(range(100), stream, strict=False):
        assert len(message) == 1000
    stream.cancel()
    assert server.line() == "ended CANCELLED\n"


def test_slow_reader_costs_little_memory_and_holds_up_nobody(server, client):
    before = rss_kib(server.process.pid)
    stream = client.repeat(b"x" * 10000, metadata=[("x-count", "4000000000")])
    next(stream)  # and nothing more is read: the client's windows are full soon
    other = Client(server)
    for _ in range(100):
        assert other.say(b"quick", timeout=TIMEOUT_S) == b"quick"
        assert client.say(b"beside it", timeout=TIMEOUT_S) == b"beside it"
    assert_grows_less(server.process.pid, before, 64 << 10)
    other.channel.close()
    stream.cancel()


def test_client_stream_and_bidi(client):
    assert client.join(iter([b"a", b"b", b"", b"c"]), timeout=TIMEOUT_S) == b"abc"
    sent = [str(i).encode() for i in range(1000)]
    assert list(client.chat(iter(sent), timeout=TIMEOUT_S)) == sent


def test_thousand_calls_at_once(client):
    calls = [
        client.say.future(str(i).encode(), metadata=[("x-delay-ms", "100")], timeout=TIMEOUT_S)
        for i in range(1000)
    ]
    assert [call.result() for call in calls] == [str(i).encode() for i in range(1000)]


def test_many_clients_come_and_go(server):
    def use():
        for _ in range(10):
            client = Client(server)
            assert client.say(b"x", timeout=TIMEOUT_S) == b"x"
            client.channel.close()

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_health_is_served(client):
    stub = health_pb2_grpc.HealthStub(client.channel)
    serving = health_pb2.HealthCheckResponse.SERVING
    for name in ("", "example.v1.Echo"):
        request = health_pb2.HealthCheckRequest(service=name)
        assert stub.Check(request, timeout=TIMEOUT_S).status == serving
    unknown = health_pb2.HealthCheckRequest(service="no.Such")
    error = status_of(lambda: stub.Check(unknown, timeout=TIMEOUT_S))
    assert error.code() == grpc.StatusCode.NOT_FOUND
    watch = stub.Watch(unknown)
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    watch.cancel()


def test_reflection_describes_the_services(client):
    database = ProtoReflectionDescriptorDatabase(client.channel)
    assert set(database.get_services()) == {
        "example.v1.Echo",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    }
    pool = descriptor_pool.DescriptorPool(database)
    echo = pool.FindServiceByName("example.v1.Echo")
    assert [method.name for method in echo.methods] == ["Say", "Repeat", "Join", "Chat"]
    text = pool.FindMessageTypeByName("example.v1.Text")
    assert text.fields_by_name["text"].number == 1


def test_stop_lets_a_short_call_finish_and_ends_a_long_one(server, client):
    assert client.say(b"connected", timeout=TIMEOUT_S) == b"connected"
    short = client.say.future(b"short", metadata=[("x-delay-ms", "500")])
    long = client.say.future(b"long", metadata=[("x-delay-ms", "60000")])
    assert client.say(b"both are there", timeout=TIMEOUT_S) == b"both are there"
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began < 30
    assert short.result() == b"short"
    assert long.exception().code() == grpc.StatusCode.UNAVAILABLE


def test_stop_does_not_wait_for_a_client_that_reads_nothing(server):
    with socket.socket(socket.AF_UNIX) as stuck:
        stuck.connect(server.path)
        stuck.sendall(PREFACE)
        time.sleep(0.1)
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 30
    assert not os.path.exists(server.path)


def test_broken_client_harms_nobody(server, client):
    for junk in (b"GET / HTTP/1.1\r\n\r\n", PREFACE + b"\xff" * 100, PREFACE + bytes(9) * 2000):
        with socket.socket(socket.AF_UNIX) as broken:
            broken.settimeout(TIMEOUT_S)
            broken.connect(server.path)
            send_all(broken, junk)
            with contextlib.suppress(ConnectionResetError):  # what it has not read is lost
                while broken.recv(65536):
                    pass
    assert client.say(b"still here", timeout=TIMEOUT_S) == b"still here"


def sockets_of(server):
    """The sockets that the server has open, by their inodes."""
    folder = f"/proc/{server.process.pid}/fd"
    links = [os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder)]
    return sorted(link for link in links if link.startswith("socket:"))


def test_subscriptions_are_cancelled_by_the_thousand_on_one_connection(server, client):
    stub = health_pb2_grpc.HealthStub(client.channel)
    request = health_pb2.HealthCheckRequest(service="example.v1.Echo")
    assert client.say(b"connected", timeout=TIMEOUT_S) == b"connected"
    before = sockets_of(server)
    for _ in range(5000):
        watch = stub.Watch(request)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        watch.cancel()
    assert client.say(b"still here", timeout=TIMEOUT_S) == b"still here"
    assert sockets_of(server) == before  # a client would connect again without a word


def flood_of_resets(count):
    # :method POST, :scheme http, :path /; a call that is refused at once is reset too.
    head = bytes([0x83, 0x86, 0x84])
    frames = [PREFACE]
    for stream in range(1, 2 * count, 2):
        number = struct.pack(">I", stream)
        frames.append(bytes([0, 0, len(head), 1, 4]) + number + head)
        frames.append(bytes([0, 0, 4, 3, 0]) + number + struct.pack(">I", 8))
    return b"".join(frames)


def send_all(peer, data):
    """Sends as much as the server reads."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        peer.sendall(data)


def goaway_code(frames):
    """The error code with which the server ends a connection after these frames, or None."""
    while len(frames) >= 9:
        end = 9 + int.from_bytes(frames[:3])
        if frames[3] == GOAWAY:
            return int.from_bytes(frames[13:17])
        frames = frames[end:]
    return None


def test_flood_of_resets_ends_that_connection_only(server, client):
    got = b""
    with socket.socket(socket.AF_UNIX) as hostile:
        hostile.settimeout(TIMEOUT_S)
        hostile.connect(server.path)
        sender = threading.Thread(target=send_all, args=(hostile, flood_of_resets(40000)))
        sender.start()
        with contextlib.suppress(ConnectionResetError):
            while data := hostile.recv(65536):
                got += data
        sender.join()
    assert goaway_code(got) == ENHANCE_YOUR_CALM
    assert client.say(b"still here", timeout=TIMEOUT_S) == b"still here"
