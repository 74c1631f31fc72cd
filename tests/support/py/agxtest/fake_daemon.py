"""A scripted daemon: the services of our .proto files on grpcio.

Every method is a Python function that the test may replace. It gets the request and the context and
returns an answer, or yields several.
"""

import subprocess
import tempfile
import threading
from concurrent import futures
from pathlib import Path

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PROTO = Path(__file__).parents[4] / "api" / "proto"
FILES = [
    "agbox/v1/service.proto",
    "agentix/v1/control.proto",
    "agentix/v1/image.proto",
    "google/rpc/error_details.proto",
    "google/rpc/status.proto",
]
SERVICES = ["agbox.v1.SandboxService", "agentix.v1.ControlService", "agentix.v1.ImageService"]


def load():
    """A pool of all messages, which protoc makes from the .proto files."""
    pool = descriptor_pool.DescriptorPool()
    with tempfile.NamedTemporaryFile() as out:
        command = ["protoc", f"--proto_path={PROTO}", "--include_imports"]
        subprocess.run([*command, f"--descriptor_set_out={out.name}", *FILES], check=True)
        found = descriptor_pb2.FileDescriptorSet.FromString(Path(out.name).read_bytes())
    for file in found.file:
        pool.Add(file)
    return pool


class Messages:
    """messages.SandboxHandle(...) makes the message with that name, from any package."""

    def __init__(self):
        self.pool = load()

    def __getattr__(self, name):
        for package in ("agbox.v1", "agentix.v1", "google.rpc"):
            try:
                return self.full(f"{package}.{name}")
            except KeyError:
                continue
        raise AttributeError(name)

    def full(self, name):
        return message_factory.GetMessageClass(self.pool.FindMessageTypeByName(name))


class Refusal(Exception):
    """A method that raises this ends with its code, message and reason."""

    def __init__(self, code, message, reason=None, **metadata):
        super().__init__(message)
        self.code, self.message, self.reason, self.metadata = code, message, reason, metadata

    def end(self, messages, context):
        if self.reason:
            status = messages.full("google.rpc.Status")(
                code=self.code.value[0], message=self.message
            )
            info = messages.full("google.rpc.ErrorInfo")(
                reason=self.reason, domain="agents-sandbox", metadata=self.metadata
            )
            status.details.add().Pack(info)
            details = status.SerializeToString()
            context.set_trailing_metadata([("grpc-status-details-bin", details)])
        context.abort(self.code, self.message)


class FakeDaemon:
    """daemon.methods["GetSandbox"] = function sets a method; others are UNIMPLEMENTED.

    A function gets a client's stream as a list, when the stream is complete; a function in
    daemon.streaming gets it as it arrives.

    A method of agentix.v1 with the name of another method is "agentix.v1.NAME". If a method returns
    bytes, they are sent unchanged.
    """

    def __init__(self, path):
        self.path = str(path)
        self.messages = Messages()
        self.methods, self.streaming = {}, {}
        self.requests = []
        self.server = None

    def start(self):
        Path(self.path).unlink(missing_ok=True)
        self.server = grpc.server(futures.ThreadPoolExecutor(32))
        self.server.add_generic_rpc_handlers([Handler(self)])
        self.server.add_insecure_port(f"unix://{self.path}")
        self.server.start()

    def stop(self):
        """Stops at once; running calls are lost."""
        if self.server:
            self.server.stop(0).wait()
        self.server = None

    def find(self, path):
        _, service, name = path.split("/")
        if service not in SERVICES:
            return None
        own = self.methods.get(f"{service.rpartition('.')[0]}.{name}")
        return own or self.methods.get(name) or self.streaming.get(name)


class Handler(grpc.GenericRpcHandler):
    """Finds the function at each call, so that tests may replace it at any time."""

    def __init__(self, daemon):
        self.daemon = daemon

    def service(self, details):
        function = self.daemon.find(details.method)
        if not function:
            return None
        _, service, name = details.method.split("/")
        method = self.daemon.messages.pool.FindServiceByName(service).methods_by_name[name]
        request_type = self.daemon.messages.full(method.input_type.full_name)
        return self.make(method, function, request_type)

    def make(self, method, function, request_type):
        def one(request, context):
            self.daemon.requests.append((method.name, request))
            try:
                return function(request, context)
            except Refusal as refusal:
                return refusal.end(self.daemon.messages, context)

        def many(request, context):
            self.daemon.requests.append((method.name, request))
            try:
                yield from function(request, context)
            except Refusal as refusal:
                refusal.end(self.daemon.messages, context)

        def collected(requests, context):
            whole = method.name not in self.daemon.streaming
            return one(list(requests) if whole else requests, context)

        kinds = {
            (False, False): (grpc.unary_unary_rpc_method_handler, one),
            (False, True): (grpc.unary_stream_rpc_method_handler, many),
            (True, False): (grpc.stream_unary_rpc_method_handler, collected),
        }
        kind, behaviour = kinds[method.client_streaming, method.server_streaming]
        return kind(behaviour, request_type.FromString, to_bytes)


def until_over(context):
    """Waits until the client of a call, or the daemon, has ended."""
    over = threading.Event()
    if context.add_callback(over.set):
        over.wait()


def to_bytes(message):
    return message if isinstance(message, bytes) else message.SerializeToString()
