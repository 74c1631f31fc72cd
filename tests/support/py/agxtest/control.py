"""Calls methods of agentixd by name, with the descriptors of its reflection service."""

import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

TIMEOUT_S = 60


def open_channel(path):
    # Needs its own connection: channels to the same target would share one.
    options = [("grpc.use_local_subchannel_pool", 1)]
    return grpc.insecure_channel(f"unix://{path}", options=options)


def check_health(path):
    """The status of the whole server in the health service."""
    with open_channel(path) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        return stub.Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_S).status


class Control:
    """Calls methods by name: control.call("agbox.v1.SandboxService/Ping")."""

    def __init__(self, path):
        self.channel = open_channel(path)
        self.pool = descriptor_pool.DescriptorPool(ProtoReflectionDescriptorDatabase(self.channel))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.channel.close()

    def prepare(self, method, fields):
        service, name = method.split("/")
        kind = self.pool.FindServiceByName(service).FindMethodByName(name)
        request = message_factory.GetMessageClass(kind.input_type)(**fields)
        return request, message_factory.GetMessageClass(kind.output_type).FromString

    def call(self, method, **fields):
        request, parse = self.prepare(method, fields)
        do = self.channel.unary_unary(f"/{method}", lambda m: m.SerializeToString(), parse)
        return do(request, timeout=TIMEOUT_S)

    def stream(self, method, **fields):
        request, parse = self.prepare(method, fields)
        do = self.channel.unary_stream(f"/{method}", lambda m: m.SerializeToString(), parse)
        return do(request)


def call(path, method, **fields):
    """Makes one unary call on its own connection."""
    with Control(path) as control:
        return control.call(method, **fields)
