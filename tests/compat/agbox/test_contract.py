"""Compares our agbox.v1 with the descriptors in the published Python SDK of agents-sandbox."""

from agents_sandbox import client
from agxtest.protos import descriptor_set
from google.protobuf import descriptor_pb2


def fields_of(message):
    """Name, number, kind and presence of each field, of messages inside it too."""
    found = {}
    for field in message.field:
        parent = field.oneof_index if field.HasField("oneof_index") else None
        group = message.oneof_decl[parent].name if parent is not None else None
        found[field.name] = (
            field.number,
            field.type,
            field.label,
            field.type_name,
            group,
            field.proto3_optional,
        )
    for inner in message.nested_type:
        found |= {f"{inner.name}.{name}": what for name, what in fields_of(inner).items()}
    return found


def test_our_proto_has_all_that_the_sdks_has():
    """Ours may have more: fields from 1000 on, messages and enums of other names."""
    theirs = descriptor_pb2.FileDescriptorProto()
    client.service_pb2.DESCRIPTOR.CopyToProto(theirs)
    (ours,) = [f for f in descriptor_set().file if f.name == "agbox/v1/service.proto"]
    assert ours.package == theirs.package == "agbox.v1"
    mine = {m.name: fields_of(m) for m in ours.message_type}
    for message in theirs.message_type:
        wanted = fields_of(message)
        assert {k: v for k, v in mine[message.name].items() if k in wanted} == wanted
        added = {k: v for k, v in mine[message.name].items() if k not in wanted}
        assert all(number >= 1000 for number, *_ in added.values()), (message.name, added)
    enums = {e.name: [(v.name, v.number) for v in e.value] for e in ours.enum_type}
    for enum in theirs.enum_type:
        assert enums[enum.name] == [(v.name, v.number) for v in enum.value]
    (service,), (wanted,) = ours.service, theirs.service
    methods = {m.name: m for m in service.method}
    for method in wanted.method:
        own = methods.pop(method.name)
        assert (own.input_type, own.output_type) == (method.input_type, method.output_type)
        assert own.server_streaming == method.server_streaming
        assert own.client_streaming == method.client_streaming
    assert methods == {}
