"""Accepted requests in each state, and every reason of a refusal."""

import grpc
import pytest
from agxtest.agbox import CALL_S, refused, state_name, unique
from agxtest.protos import agbox
from agxtest.world import FOREVER, TRUE

STATES = ("PENDING", "READY", "FAILED", "STOPPED", "DELETING", "DELETED")


@pytest.fixture(name="in_state")
def fixture_in_state(shared, shared_daemon):
    """in_state(name): the id of a sandbox that is in this state and stays in it."""
    world = shared_daemon.world
    held = []

    def make(state):
        sandbox_id = unique(state.lower())
        if state == "PENDING":
            held.append(world.hold("create", sandbox_id))
            shared.create(sandbox_id)
            shared.until(sandbox_id, agbox().SANDBOX_PREPARING)
        elif state == "FAILED":
            world.fail("create", sandbox_id, "no such image")
            shared.create(sandbox_id)
            shared.until(sandbox_id, agbox().SANDBOX_FAILED)
        else:
            shared.ready(sandbox_id)
        if state == "STOPPED":
            shared.box.StopSandbox(sandbox_id=sandbox_id)
            shared.until(sandbox_id, agbox().SANDBOX_STOPPED)
        elif state == "DELETING":
            held.append(world.hold("delete", sandbox_id))
            shared.box.DeleteSandbox(sandbox_id=sandbox_id)
        elif state == "DELETED":
            shared.deleted(sandbox_id)
        assert state_name(shared.get(sandbox_id).state) == state
        return sandbox_id

    yield make
    for each in held:
        each.release()


@pytest.mark.parametrize("state", [s for s in STATES if s != "READY"])
def test_stop_is_for_ready_sandboxes(shared, in_state, state):
    sandbox_id = in_state(state)
    before = shared.get(sandbox_id)
    found = shared.refused("StopSandbox", sandbox_id=sandbox_id)
    assert (found.code, found.reason) == ("FAILED_PRECONDITION", "SANDBOX_INVALID_STATE")
    assert found.message == f"sandbox {sandbox_id} is not ready"
    assert found.metadata == {"sandbox_id": sandbox_id}
    assert found.domain == "agents-sandbox"
    assert shared.get(sandbox_id) == before


@pytest.mark.parametrize("state", [s for s in STATES if s != "STOPPED"])
def test_resume_is_for_stopped_sandboxes(shared, in_state, state):
    sandbox_id = in_state(state)
    before = shared.get(sandbox_id)
    found = shared.refused("ResumeSandbox", sandbox_id=sandbox_id)
    assert (found.code, found.reason) == ("FAILED_PRECONDITION", "SANDBOX_INVALID_STATE")
    assert found.message == f"sandbox {sandbox_id} is not stopped"
    assert found.metadata == {"sandbox_id": sandbox_id}
    assert shared.get(sandbox_id) == before


@pytest.mark.parametrize("state", [s for s in STATES if s != "READY"])
def test_a_command_is_for_ready_sandboxes(shared, in_state, state):
    sandbox_id = in_state(state)
    found = shared.refused("CreateExec", sandbox_id=sandbox_id, command=TRUE)
    assert (found.code, found.reason) == ("FAILED_PRECONDITION", "SANDBOX_NOT_READY")
    assert found.message == f"sandbox {sandbox_id} is not ready"
    assert found.metadata == {"sandbox_id": sandbox_id}


def test_stop_resume_and_exec_are_accepted_where_they_belong(shared, in_state):
    ready, stopped = in_state("READY"), in_state("STOPPED")
    assert shared.start(ready, *TRUE).exec_id
    assert shared.box.StopSandbox(sandbox_id=ready).accepted
    assert shared.box.ResumeSandbox(sandbox_id=stopped).accepted
    assert state_name(shared.get(stopped).state) in ("PENDING", "READY")


@pytest.mark.parametrize("state", STATES)
def test_delete_is_accepted_in_every_state(shared, in_state, state):
    sandbox_id = in_state(state)
    before = shared.get(sandbox_id).last_event_sequence
    assert shared.box.DeleteSandbox(sandbox_id=sandbox_id).accepted
    after = shared.get(sandbox_id)
    if state in ("DELETING", "DELETED"):
        assert (state_name(after.state), after.last_event_sequence) == (state, before)
    else:
        assert state_name(after.state) in ("DELETING", "DELETED")
        assert after.last_event_sequence > before
    if state == "FAILED":
        assert (after.error_code, after.error_message) == ("", "")


@pytest.mark.parametrize("state", STATES)
def test_a_sandbox_is_readable_in_every_state(shared, in_state, state):
    sandbox_id = in_state(state)
    handle = shared.get(sandbox_id)
    assert len(shared.history(sandbox_id)) == handle.last_event_sequence
    listed = shared.box.ListSandboxes(include_deleted=True).sandboxes
    assert handle in list(listed)


def test_only_a_failed_sandbox_says_why(shared, in_state):
    failed = shared.get(in_state("FAILED"))
    assert failed.error_code == "SANDBOX_CREATE_FAILED"
    assert "no such image" in failed.error_message


# -- nobody of that name


@pytest.mark.parametrize(
    "method",
    ["GetSandbox", "ResumeSandbox", "StopSandbox", "DeleteSandbox", "SubscribeSandboxEvents"],
)
@pytest.mark.parametrize("sandbox_id", ["nobody-there", "", "a", "with space"])
def test_an_unknown_sandbox_is_not_found(shared, method, sandbox_id):
    found = shared.refused(method, sandbox_id=sandbox_id)
    assert (found.code, found.reason) == ("NOT_FOUND", "SANDBOX_NOT_FOUND")
    assert found.message == f"sandbox {sandbox_id} was not found"
    assert found.metadata == {"sandbox_id": sandbox_id}
    assert found.domain == "agents-sandbox"


def test_a_command_for_an_unknown_sandbox_is_not_found(shared):
    found = shared.refused("CreateExec", sandbox_id="nobody-there", command=TRUE)
    assert (found.code, found.reason) == ("NOT_FOUND", "SANDBOX_NOT_FOUND")
    assert found.message == "sandbox nobody-there was not found"


@pytest.mark.parametrize("method", ["GetExec", "CancelExec"])
def test_an_unknown_exec_is_not_found(shared, method):
    found = shared.refused(method, exec_id="nothing-there")
    assert (found.code, found.reason) == ("NOT_FOUND", "EXEC_NOT_FOUND")
    assert found.message == "exec nothing-there was not found"
    assert found.metadata == {"exec_id": "nothing-there"}
    assert found.domain == "agents-sandbox"


def test_an_id_of_other_letters_comes_back_as_it_was(shared):
    odd = 'ö%41 "\t~\x7f€𝄞'
    found = shared.refused("GetSandbox", sandbox_id=odd)
    assert found.message == f"sandbox {odd} was not found"
    assert found.metadata == {"sandbox_id": odd}


def test_a_refusal_is_a_response_of_trailers_only(shared):
    with pytest.raises(grpc.RpcError) as caught:
        shared.box.GetSandbox(sandbox_id="nobody-there")
    assert [key for key, _ in caught.value.initial_metadata()] == []
    trailers = [key for key, _ in caught.value.trailing_metadata()]
    assert "grpc-status-details-bin" in trailers


# -- what is being done


def test_a_second_stop_is_accepted_and_adds_nothing(shared, shared_daemon):
    sandbox_id = shared.ready()
    stop = shared_daemon.world.hold("stop", sandbox_id)
    assert shared.box.StopSandbox(sandbox_id=sandbox_id).accepted
    assert shared.box.StopSandbox(sandbox_id=sandbox_id).accepted
    handle = shared.get(sandbox_id)
    assert state_name(handle.state) == "READY"
    found = shared.refused("CreateExec", sandbox_id=sandbox_id, command=TRUE)
    assert found.reason == "SANDBOX_NOT_READY"
    stop.release()
    events = shared.until(sandbox_id, agbox().SANDBOX_STOPPED)
    types = [e.event_type for e in events]
    assert types.count(agbox().SANDBOX_STOP_REQUESTED) == 1


def test_a_delete_during_a_create_ends_deleted(shared, shared_daemon):
    sandbox_id = unique("early")
    create = shared_daemon.world.hold("create", sandbox_id)
    shared.create(sandbox_id)
    shared.until(sandbox_id, agbox().SANDBOX_PREPARING)
    shared.box.DeleteSandbox(sandbox_id=sandbox_id)
    create.release()
    events = shared.until(sandbox_id, agbox().SANDBOX_DELETED)
    types = [e.event_type for e in events]
    assert agbox().SANDBOX_READY not in types
    assert types[-2:] == [agbox().SANDBOX_DELETE_REQUESTED, agbox().SANDBOX_DELETED]
    assert sandbox_id not in shared_daemon.world.sandboxes()


def test_a_delete_during_a_stop_ends_deleted(shared, shared_daemon):
    sandbox_id = shared.ready()
    stop = shared_daemon.world.hold("stop", sandbox_id)
    shared.box.StopSandbox(sandbox_id=sandbox_id)
    stop.begun()  # the answer to the stop may be there before
    shared.box.DeleteSandbox(sandbox_id=sandbox_id)
    stop.release()
    events = shared.until(sandbox_id, agbox().SANDBOX_DELETED)
    assert agbox().SANDBOX_STOPPED not in [e.event_type for e in events]
    assert sandbox_id not in shared_daemon.world.sandboxes()


@pytest.mark.parametrize(
    ("verb", "code"),
    [
        ("create", "SANDBOX_CREATE_FAILED"),
        ("stop", "SANDBOX_STOP_FAILED"),
        ("resume", "SANDBOX_RESUME_FAILED"),
        ("delete", "SANDBOX_DELETE_FAILED"),
    ],
)
def test_an_operation_that_fails_leaves_a_failed_sandbox(shared, shared_daemon, verb, code):
    sandbox_id = unique(verb)
    shared_daemon.world.fail(verb, sandbox_id, "it is broken")
    shared.create(sandbox_id)
    if verb != "create":
        shared.until(sandbox_id, agbox().SANDBOX_READY)
    if verb in ("stop", "resume"):
        shared.box.StopSandbox(sandbox_id=sandbox_id)
    if verb == "resume":
        shared.until(sandbox_id, agbox().SANDBOX_STOPPED)
        shared.box.ResumeSandbox(sandbox_id=sandbox_id)
    if verb == "delete":
        shared.box.DeleteSandbox(sandbox_id=sandbox_id)
    failed = shared.until(sandbox_id, agbox().SANDBOX_FAILED)[-1]
    assert failed.sandbox_phase.error_code == code
    assert "it is broken" in failed.sandbox_phase.error_message
    handle = shared.get(sandbox_id)
    assert state_name(handle.state) == "FAILED"
    assert handle.error_code == code
    assert handle.error_message == failed.sandbox_phase.error_message
    assert shared.deleted(sandbox_id) == sandbox_id
    assert shared.get(sandbox_id).error_code == ""


def test_a_delete_ends_the_commands_first(shared):
    sandbox_id = shared.ready()
    exec_id = shared.start(sandbox_id, *FOREVER).exec_id
    shared.deleted(sandbox_id)
    ended = shared.exec(exec_id)
    assert (ended.state, ended.exit_code) == (agbox().EXEC_STATE_FAILED, 137)
    types = [e.event_type for e in shared.history(sandbox_id)]
    assert types[-2:] == [agbox().EXEC_FAILED, agbox().SANDBOX_DELETED]


def test_methods_that_nobody_has_are_unimplemented(shared):
    for path in ("/agbox.v1.SandboxService/Nothing", "/nobody.v1.Service/Ping", "/"):
        call = shared.channel.unary_unary(path)
        assert refused(call, b"", timeout=CALL_S).code == "UNIMPLEMENTED"


def test_bytes_that_are_no_message_are_refused(shared):
    call = shared.channel.unary_unary("/agbox.v1.SandboxService/GetSandbox")
    assert refused(call, b"\x0a\xff", timeout=CALL_S).code in ("INTERNAL", "INVALID_ARGUMENT")
    call = shared.channel.unary_unary("/agbox.v1.SandboxService/GetSandbox")
    assert refused(call, b"\x0a\x02\xff\xfe", timeout=CALL_S).code in (
        "INTERNAL",
        "INVALID_ARGUMENT",
    )
