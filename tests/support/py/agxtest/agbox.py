"""A client of the daemon on plain grpcio: methods, parsed refusals, waits by events."""

import itertools
import os
from dataclasses import dataclass, field

import grpc
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from agxtest import protos
from agxtest.protos import agbox

IMAGE = "image"
CALL_S = 60  # only ends a hang
numbers = itertools.count(1)


def unique(prefix="id"):
    """A new id."""
    return f"{prefix}-{os.getpid()}-{next(numbers)}"


@dataclass
class Refusal:
    """Why a call failed. `reason` is empty if the error has no details."""

    code: str
    message: str
    reason: str = ""
    domain: str = ""
    metadata: dict = field(default_factory=dict)


def refusal_of(error):
    """Parses an error as clients do: from_call() raises if status and details disagree."""
    found = Refusal(error.code().name, error.details())
    status = rpc_status.from_call(error)
    if status is not None:
        assert len(status.details) == 1, status
        info = error_details_pb2.ErrorInfo()
        assert status.details[0].type_url == "type.googleapis.com/google.rpc.ErrorInfo"
        assert status.details[0].Unpack(info)
        found.reason, found.domain, found.metadata = info.reason, info.domain, dict(info.metadata)
    return found


def refused(call, *args, **fields):
    """The refusal of a call that must fail; it reads a stream to its end."""
    try:
        answer = call(*args, **fields)
        if hasattr(answer, "__next__"):
            answer = list(answer)
    except grpc.RpcError as error:
        return refusal_of(error)
    raise AssertionError(f"was not refused: {answer}")


class Stub:
    """A service: each method is an attribute that takes the request's fields as keywords.

    `seconds` is the deadline; a stream without one lasts until it is cancelled.
    """

    def __init__(self, channel, service, seconds=CALL_S):
        descriptor = protos.pool().FindServiceByName(service)
        for name, method in descriptor.methods_by_name.items():
            setattr(self, name, self.bind(channel, service, name, method, seconds))

    @staticmethod
    def bind(channel, service, name, method, seconds):
        request_class = GetMessageClass(method.input_type)
        answer_class = GetMessageClass(method.output_type)
        kind = "_".join(
            "stream" if streams else "unary"
            for streams in (method.client_streaming, method.server_streaming)
        )
        call = getattr(channel, kind)(
            f"/{service}/{name}",
            request_serializer=request_class.SerializeToString,
            response_deserializer=answer_class.FromString,
        )
        if kind == "stream_unary":

            def many(requests, seconds=seconds):
                return call((request_class(**fields) for fields in requests), timeout=seconds)

            return many
        default = None if method.server_streaming else seconds

        def one(seconds=default, **fields):
            return call(request_class(**fields), timeout=seconds)

        return one


class Client:
    """One channel: `box` is agbox.v1.SandboxService, `control` agentix.v1.ControlService."""

    def __init__(self, channel, seconds=CALL_S):
        self.channel, self.seconds = channel, seconds
        self.box = Stub(channel, "agbox.v1.SandboxService", seconds)
        self.control = Stub(channel, "agentix.v1.ControlService", seconds)

    def close(self):
        self.channel.close()

    # -- sandboxes

    def create(self, sandbox_id="", config_yaml=b"", **spec):
        """Calls CreateSandbox and returns the handle."""
        spec = agbox().CreateSpec(**({"image": IMAGE} | spec))
        request = {"create_spec": spec, "sandbox_id": sandbox_id, "config_yaml": config_yaml}
        return self.box.CreateSandbox(**request).sandbox

    def get(self, sandbox_id):
        return self.box.GetSandbox(sandbox_id=sandbox_id).sandbox

    def ready(self, sandbox_id="", **spec):
        """Makes a sandbox, waits until it is READY and returns its id."""
        made = self.create(sandbox_id or unique("box"), **spec)
        self.until(made.sandbox_id, agbox().SANDBOX_READY)
        return made.sandbox_id

    def stopped(self, **spec):
        sandbox_id = self.ready(**spec)
        self.box.StopSandbox(sandbox_id=sandbox_id)
        self.until(sandbox_id, agbox().SANDBOX_STOPPED)
        return sandbox_id

    def deleted(self, sandbox_id=None, **spec):
        sandbox_id = sandbox_id or self.ready(**spec)
        self.box.DeleteSandbox(sandbox_id=sandbox_id)
        self.until(sandbox_id, agbox().SANDBOX_DELETED)
        return sandbox_id

    # -- events

    def follow(self, sandbox_id, after=0, snapshot=False, seconds=None):
        """Subscribes to events: iterate the result; cancel() ends it."""
        return self.box.SubscribeSandboxEvents(
            sandbox_id=sandbox_id,
            from_sequence=after,
            include_current_snapshot=snapshot,
            seconds=seconds or self.seconds,
        )

    def until(self, sandbox_id, *types, after=0, exec_id=None):
        """Events up to the first of one of these types (and of this exec)."""
        events, stream = [], self.follow(sandbox_id, after)
        for event in stream:
            events.append(event)
            if event.event_type in types and exec_id in (None, event.exec.exec_id):
                stream.cancel()
                return events
        raise AssertionError(f"the stream ended behind {events}")

    def history(self, sandbox_id):
        """All events so far."""
        newest = self.get(sandbox_id).last_event_sequence
        stream = self.follow(sandbox_id)
        events = list(itertools.islice(stream, newest))
        stream.cancel()
        return events

    # -- execs

    def start(self, sandbox_id, *command, **fields):
        """Calls CreateExec and returns the answer."""
        return self.box.CreateExec(sandbox_id=sandbox_id, command=command, **fields)

    def exec(self, exec_id):
        return self.box.GetExec(exec_id=exec_id).exec

    def ended(self, exec_id):
        """Waits for the end of an exec as the SDKs do, and returns the exec."""
        current = self.exec(exec_id)
        if current.state != agbox().EXEC_STATE_RUNNING:
            return current
        types = (agbox().EXEC_FINISHED, agbox().EXEC_FAILED, agbox().EXEC_CANCELLED)
        after = current.last_event_sequence
        self.until(current.sandbox_id, *types, after=after, exec_id=exec_id)
        current = self.exec(exec_id)
        assert current.state != agbox().EXEC_STATE_RUNNING, "seen in an event, not yet in GetExec"
        return current

    def run(self, sandbox_id, *command, **fields):
        return self.ended(self.start(sandbox_id, *command, **fields).exec_id)

    # -- refusals

    def refused(self, method, **fields):
        return refused(getattr(self.box, method), **fields)


def state_name(number):
    """Returns READY for SANDBOX_STATE_READY."""
    enum = protos.pool().FindEnumTypeByName("agbox.v1.SandboxState")
    return enum.values_by_number[number].name.removeprefix("SANDBOX_STATE_")


def event_name(number):
    return protos.pool().FindEnumTypeByName("agbox.v1.EventType").values_by_number[number].name


def names(events):
    return [event_name(e.event_type) for e in events]
