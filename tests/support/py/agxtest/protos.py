"""Messages of api/proto, made at run time.

They are in a separate descriptor pool, so that a program can also load messages with the same names
(the SDK of agents-sandbox has them).
"""

import functools
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PROTO = Path(__file__).parents[4] / "api" / "proto"
FILES = ("agbox/v1/service.proto", "agentix/v1/control.proto", "agentix/v1/image.proto")


def descriptor_set():
    """The descriptors of FILES and their imports, from protoc."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory, "set")
        subprocess.run(
            ["protoc", f"-I{PROTO}", "--include_imports", f"--descriptor_set_out={out}", *FILES],
            check=True,
        )
        return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())


@functools.cache
def pool():
    made = descriptor_pool.DescriptorPool()
    for file in descriptor_set().file:
        made.Add(file)
    return made


def message(name):
    """The class of a message, from its full name."""
    return message_factory.GetMessageClass(pool().FindMessageTypeByName(name))


def namespace(path):
    """The messages and enum values of a file, by their names."""
    file = pool().FindFileByName(path)
    found = {name: message(d.full_name) for name, d in file.message_types_by_name.items()}
    for enum in file.enum_types_by_name.values():
        found |= {name: value.number for name, value in enum.values_by_name.items()}
    return SimpleNamespace(**found)


@functools.cache
def agbox():
    return namespace("agbox/v1/service.proto")


@functools.cache
def agentix():
    return namespace("agentix/v1/control.proto")
