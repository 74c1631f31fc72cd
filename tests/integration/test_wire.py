"""Compares our protobuf code (wire/) with Google's, on the descriptors of our .proto files."""

import json
import os
import subprocess

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

POOL = descriptor_pool.DescriptorPool()
with open(os.environ["API_DESCRIPTORS"], "rb") as descriptors:
    for FILE in descriptor_pb2.FileDescriptorSet.FromString(descriptors.read()).file:
        POOL.Add(FILE)

READ = {
    "create": "agbox.v1.CreateSandboxRequest",
    "exec": "agbox.v1.CreateExecRequest",
    "list": "agbox.v1.ListSandboxesRequest",
    "page": "agentix.v1.ListSandboxesRequest",
    "selector": "agbox.v1.DeleteSandboxesRequest",
    "subscribe": "agbox.v1.SubscribeSandboxEventsRequest",
    "watch": "agentix.v1.WatchEventsRequest",
    "output": "agentix.v1.ReadExecOutputRequest",
    "wait_sandbox": "agentix.v1.WaitSandboxRequest",
    "wait_exec": "agentix.v1.WaitExecRequest",
    "input": "agentix.v1.WriteExecInputRequest",
    "stats": "agentix.v1.GetStatsResponse",
    "sandbox_id": "agbox.v1.StopSandboxRequest",
    "exec_id": "agbox.v1.CancelExecRequest",
    "active": "agbox.v1.ListActiveExecsRequest",
    "image": "agentix.v1.RemoveImageRequest",
    "import": "agentix.v1.ImportImageRequest",
    "images": "agentix.v1.ListImagesResponse",
    "inspect": "agentix.v1.InspectImageResponse",
    "removed": "agentix.v1.PruneImagesResponse",
    "pull": "agentix.v1.PullImageResponse",
}


def message(name):
    return message_factory.GetMessageClass(POOL.FindMessageTypeByName(name))()


def echo(verb, kind, data=b""):
    done = subprocess.run([os.environ["WIRE_ECHO"], verb, kind], input=data, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def scalar(field):
    if field.type == field.TYPE_STRING:
        return f"{field.name} ä"
    if field.type == field.TYPE_BYTES:
        return b"\0\xff"
    if field.type == field.TYPE_ENUM:
        return 2
    return True if field.type == field.TYPE_BOOL else 7


def fill(target, leave=()):
    """Fills every field, and of a oneof the last one."""
    for field in target.DESCRIPTOR.fields:
        if field.name in leave:
            continue
        value = getattr(target, field.name)
        if field.message_type and field.message_type.GetOptions().map_entry:
            value.update({"k": field.name, "": "", "ä": ""})
        elif field.message_type and field.is_repeated:
            fill(value.add())
            value.add()
        elif field.message_type:
            value.SetInParent()
            fill(value)
        elif field.is_repeated:
            value.extend([scalar(field), scalar(field)])
        else:
            setattr(target, field.name, scalar(field))
    return target


@pytest.mark.parametrize("kind", READ)
def test_reads_and_writes_every_field(kind):
    # A set has the same state only once; an invalid state has no effect.
    sent = fill(message(READ[kind]), ["from_now", "states", "sandboxes"])
    if kind == "pull":  # has an image or its progress, without a sandbox
        sent.ClearField("image")
        sent.progress.sandbox_id = ""
    back = message(READ[kind])
    back.ParseFromString(echo("read", kind, sent.SerializeToString()))
    assert back == sent


def test_states_are_read_packed():
    sent = message("agentix.v1.ListSandboxesRequest")
    sent.states.extend([1, 2, 6])
    assert echo("read", "page", sent.SerializeToString()) == sent.SerializeToString()


def test_counts_of_states_are_read():
    sent = message("agentix.v1.GetStatsResponse")
    sent.sandboxes.add(state=2, count=10)
    sent.sandboxes.add(state=6, count=1)
    back = message("agentix.v1.GetStatsResponse")
    back.ParseFromString(echo("read", "stats", sent.SerializeToString()))
    assert back.sandboxes == sent.sandboxes


@pytest.mark.parametrize("kind", READ)
def test_message_with_nothing_in_it_is_read(kind):
    if kind in ("output", "image", "removed"):  # have to name a stream, an image, what is gone
        return
    back = message(READ[kind])
    back.ParseFromString(echo("read", kind))
    assert [f.name for f, _ in back.ListFields() if kind not in ("stats", "inspect")] == []


def test_presence_of_an_optional_field_survives():
    empty = message("agbox.v1.ListActiveExecsRequest")
    assert echo("read", "active", empty.SerializeToString()) == b""
    empty.sandbox_id = ""
    back = message("agbox.v1.ListActiveExecsRequest")
    back.ParseFromString(echo("read", "active", empty.SerializeToString()))
    assert back.HasField("sandbox_id")


def test_handle_has_every_field():
    reply = message("agentix.v1.WaitSandboxResponse")
    reply.ParseFromString(echo("write", "sandbox"))
    box = reply.sandbox
    assert reply.timed_out
    assert {f.name for f, _ in box.ListFields()} == {f.name for f in box.DESCRIPTOR.fields}
    assert (box.sandbox_id, box.state, box.last_event_sequence) == ("box-1", 3, 12)
    assert dict(box.labels) == {"empty": "", "key": "label", "ä": "€"}
    assert box.created_at.ToNanoseconds() == 1700000000123456789
    assert box.state_changed_at.ToNanoseconds() == 1700000001000000000
    assert (box.image, box.error_code) == ("debian:12", "CONTAINER_OOM")
    assert box.error_message == "main process: out of memory"
    companion, other = box.companion_containers
    assert {f.name for f, _ in companion.ListFields()} == {
        f.name for f in companion.DESCRIPTOR.fields
    }
    assert companion.healthcheck.interval.ToNanoseconds() == 1500000000
    assert companion.healthcheck.start_period.ToNanoseconds() == -1500000000
    assert companion.healthcheck.HasField("timeout")
    assert not companion.healthcheck.HasField("start_interval")
    assert list(companion.post_start_on_primary) == ["migrate", ""]
    assert (other.name, other.HasField("healthcheck")) == ("cache", False)


def test_exec_has_every_field():
    reply = message("agbox.v1.GetExecResponse")
    reply.ParseFromString(echo("write", "exec"))
    status = reply.exec
    assert {f.name for f, _ in status.ListFields()} == {f.name for f in status.DESCRIPTOR.fields}
    assert (status.exec_id, status.sandbox_id, status.state) == ("exec-1", "box-1", 3)
    assert (status.exit_code, status.error, status.last_event_sequence) == (-1, "exit code -1", 44)
    assert list(status.command) == ["make", ""]
    assert status.deadline.ToNanoseconds() == 30000000000
    assert status.created_at.ToNanoseconds() == 1700000002000000003


def test_events_of_every_type():
    data, details = echo("write", "events"), []
    for number in range(1, 15):
        size, data = data[0], data[1:]
        reply = message("agentix.v1.WatchEventsResponse")
        reply.ParseFromString(data[:size])
        data, event = data[size:], reply.event
        assert (reply.position, event.event_type) == (number, number)
        assert (event.event_id, event.sandbox_id, event.sequence) == ("box-1-5", "box-1", 5)
        assert (event.replay, event.snapshot, event.sandbox_state) == (True, False, 4)
        assert event.occurred_at.ToNanoseconds() == 1700000003999999999
        details.append(event.WhichOneof("details"))
    assert data == b""
    phase, run, companion = "sandbox_phase", "exec", "companion_container"
    assert details == [
        None, phase, None, phase, phase, phase, phase, phase, run, run, run, run, companion,
        companion,
    ]  # fmt: skip


def test_status_details():
    status, info = message("google.rpc.Status"), message("google.rpc.ErrorInfo")
    status.ParseFromString(echo("write", "status"))
    assert (status.code, status.message, len(status.details)) == (11, "the message", 1)
    assert status.details[0].type_url == "type.googleapis.com/google.rpc.ErrorInfo"
    info.ParseFromString(status.details[0].value)
    assert (info.reason, info.domain) == ("SANDBOX_EVENT_SEQUENCE_EXPIRED", "agents-sandbox")
    assert dict(info.metadata) == {"sandbox_id": "box-1", "from_sequence": "99"}


def names():
    """Every message that a method gets or returns."""
    found = set()
    for service in (
        "agbox.v1.SandboxService", "agentix.v1.ControlService", "agentix.v1.ImageService",
    ):  # fmt: skip
        for method in POOL.FindServiceByName(service).methods:
            found |= {method.input_type.full_name, method.output_type.full_name}
    return sorted(found)


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("full", [True, False], ids=["full", "empty"])
def test_json_is_that_of_protobuf(name, full):
    sent = fill(message(name)) if full else message(name)
    got = echo("json", name, sent.SerializeToString())
    want = json_format.MessageToDict(
        sent, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    assert without_nulls(json.loads(got)) == want


def without_nulls(value):
    """Go's printer prints unset messages as null, as we do; Python's leaves them out."""
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    return [without_nulls(v) for v in value] if isinstance(value, list) else value


def test_json_is_indented_by_two():
    got = echo("json", "agbox.v1.GetSandboxResponse", b"").decode()
    assert got == json.dumps(json.loads(got), indent=2) == '{\n  "sandbox": null\n}'
