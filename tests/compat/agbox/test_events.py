"""The events of a sandbox: their types, their exact fields, and subscriptions to them."""

import itertools

import pytest
from agxtest.agbox import names, refusal_of, state_name, unique
from agxtest.protos import agbox
from agxtest.world import FOREVER, TRUE, exits
from grpc import RpcError


def fields(message):
    """The fields that are set, by name; messages likewise."""
    return {
        f.name: fields(value) if hasattr(value, "ListFields") else value
        for f, value in message.ListFields()
    }


def shapes(events):
    """What each event says, once what all of them must say is checked and left out."""
    found = []
    for event in events:
        shape = fields(event)
        assert shape.pop("occurred_at")["seconds"] > 1_600_000_000
        assert shape.pop("event_id") == f"{event.sandbox_id}-{event.sequence}"
        assert shape.pop("replay") is True
        assert "snapshot" not in shape
        shape.pop("sandbox_id")
        found.append(shape)
    assert [s.pop("sequence") for s in found] == list(range(1, len(found) + 1))
    return found


def event(name, state=None, **details):
    made = {"event_type": getattr(agbox(), name)}
    if state:
        made["sandbox_state"] = getattr(agbox(), f"SANDBOX_STATE_{state}")
    return made | details


def phase(**said):
    return {"sandbox_phase": said}


CREATED = [
    event("SANDBOX_ACCEPTED", "PENDING"),
    event("SANDBOX_PREPARING", "PENDING", **phase(phase="materialize")),
    event("SANDBOX_READY", "READY"),
]


def test_the_life_of_a_sandbox(shared):
    sandbox_id = shared.ready()
    shared.box.StopSandbox(sandbox_id=sandbox_id)
    stopped = shared.until(sandbox_id, agbox().SANDBOX_STOPPED)
    shared.box.ResumeSandbox(sandbox_id=sandbox_id)
    shared.until(sandbox_id, agbox().SANDBOX_READY, after=len(stopped))
    shared.deleted(sandbox_id)
    assert shapes(shared.history(sandbox_id)) == [
        *CREATED,
        event("SANDBOX_STOP_REQUESTED", **phase(reason="stop_requested")),
        event("SANDBOX_STOPPED", "STOPPED", **phase(reason="stop_requested")),
        event("SANDBOX_ACCEPTED", "PENDING"),
        event("SANDBOX_READY", "READY"),
        event("SANDBOX_DELETE_REQUESTED", "DELETING", **phase(reason="delete_requested")),
        event("SANDBOX_DELETED", "DELETED", **phase(reason="delete_requested")),
    ]


def test_a_create_that_fails(shared, shared_daemon):
    sandbox_id = unique("fails")
    shared_daemon.world.fail("create", sandbox_id, "no such image")
    shared.create(sandbox_id)
    *_, failed = shapes(shared.until(sandbox_id, agbox().SANDBOX_FAILED))
    said = failed["sandbox_phase"]
    assert "no such image" in said["error_message"]
    assert failed == event(
        "SANDBOX_FAILED",
        "FAILED",
        **phase(error_code="SANDBOX_CREATE_FAILED", error_message=said["error_message"]),
    )


def exec_details(exec_id, state, **said):
    number = getattr(agbox(), f"EXEC_STATE_{state}")
    return {"exec": {"exec_id": exec_id, "exec_state": number} | said}


def test_the_life_of_commands(shared):
    sandbox_id = shared.ready()
    good = shared.run(sandbox_id, *TRUE).exec_id
    bad = shared.run(sandbox_id, *exits(3)).exec_id
    gone = shared.start(sandbox_id, *FOREVER).exec_id
    shared.box.CancelExec(exec_id=gone)
    shared.ended(gone)
    failure = {
        "exit_code": 3,
        "error_code": "EXEC_RUN_FAILED",
        "error_message": "docker exec failed: exit code 3",
    }
    assert shapes(shared.history(sandbox_id))[3:] == [
        event("EXEC_STARTED", **exec_details(good, "RUNNING")),
        event("EXEC_FINISHED", **exec_details(good, "FINISHED")),
        event("EXEC_STARTED", **exec_details(bad, "RUNNING")),
        event("EXEC_FAILED", **exec_details(bad, "FAILED", **failure)),
        event("EXEC_STARTED", **exec_details(gone, "RUNNING")),
        event("EXEC_CANCELLED", **exec_details(gone, "CANCELLED")),
    ]


def test_companions_are_told_of(shared, shared_daemon):
    sandbox_id = unique("friends")
    shared_daemon.world.fail_companion(sandbox_id, 1, "port in use")
    companions = [{"name": "good", "image": "a"}, {"name": "bad", "image": "b"}]
    shared.create(sandbox_id, companion_containers=companions)
    events = shared.until(sandbox_id, agbox().SANDBOX_READY)
    assert state_name(shared.get(sandbox_id).state) == "READY"
    types = (agbox().COMPANION_CONTAINER_READY, agbox().COMPANION_CONTAINER_FAILED)
    while len(events) < 5:  # those that come behind READY
        events += shared.until(sandbox_id, *types, after=len(events))
    found = {}
    for each in shapes(events):
        if "companion_container" in each:
            found[each["companion_container"]["name"]] = each
    good, bad = found["good"], found["bad"]
    assert good.pop("sandbox_state") in (1, 2)
    assert bad.pop("sandbox_state") in (1, 2)
    assert good == event("COMPANION_CONTAINER_READY", companion_container={"name": "good"})
    assert "port in use" in bad["companion_container"].pop("error_message")
    said = {"name": "bad", "error_code": "COMPANION_CONTAINER_FAILED"}
    assert bad == event("COMPANION_CONTAINER_FAILED", companion_container=said)


def test_the_handle_follows_the_events(shared):
    sandbox_id = shared.ready()
    ready = shared.history(sandbox_id)[2]
    handle = shared.get(sandbox_id)
    assert handle.last_event_sequence == 3
    assert handle.state_changed_at == ready.occurred_at
    shared.run(sandbox_id, *TRUE)
    after = shared.get(sandbox_id)
    assert after.last_event_sequence == 5
    assert after.state_changed_at == ready.occurred_at, "an exec changes no state"
    assert after.created_at == handle.created_at


# -- subscriptions


def read(stream, count):
    found = list(itertools.islice(stream, count))
    stream.cancel()
    return found


def test_a_subscription_begins_behind_its_sequence(shared):
    sandbox_id = shared.ready()
    assert [e.sequence for e in read(shared.follow(sandbox_id, 0), 3)] == [1, 2, 3]
    assert [e.sequence for e in read(shared.follow(sandbox_id, 1), 2)] == [2, 3]


def test_at_the_newest_sequence_only_what_comes_is_given(shared):
    sandbox_id = shared.ready()
    stream = shared.follow(sandbox_id, 3)
    shared.start(sandbox_id, *TRUE)
    found = read(stream, 2)
    assert [e.sequence for e in found] == [4, 5]
    assert all(e.replay and not e.snapshot for e in found)


@pytest.mark.parametrize("beyond", [4, 1000, 2**64 - 1])
def test_a_sequence_that_no_event_has_is_out_of_range(shared, beyond):
    sandbox_id = shared.ready()
    found = shared.refused("SubscribeSandboxEvents", sandbox_id=sandbox_id, from_sequence=beyond)
    assert (found.code, found.reason) == ("OUT_OF_RANGE", "SANDBOX_EVENT_SEQUENCE_EXPIRED")
    assert found.metadata == {"sandbox_id": sandbox_id, "from_sequence": str(beyond)}
    assert found.domain == "agents-sandbox"
    want = f"sandbox {sandbox_id} event sequence {beyond} is outside retained history"
    assert found.message == want


def test_a_snapshot_comes_even_in_front_of_that_error(shared):
    sandbox_id = shared.ready()
    stream = shared.follow(sandbox_id, 99, snapshot=True)
    newest = next(stream)
    assert newest.sequence == 3
    assert newest.snapshot
    with pytest.raises(RpcError) as caught:
        next(stream)
    assert refusal_of(caught.value).reason == "SANDBOX_EVENT_SEQUENCE_EXPIRED"


def test_a_snapshot_is_the_newest_event_and_the_active_commands(shared):
    sandbox_id = shared.ready()
    shared.run(sandbox_id, *TRUE)
    ids = {shared.start(sandbox_id, *FOREVER).exec_id for _ in range(2)}
    newest = shared.history(sandbox_id)[-1]
    found = read(shared.follow(sandbox_id, 7, snapshot=True), 3)
    copy = type(newest)()
    copy.CopyFrom(newest)
    copy.snapshot = True
    assert found[0] == copy
    assert {e.exec.exec_id for e in found[1:]} == ids
    for each in found[1:]:
        assert each.HasField("occurred_at")
        assert fields(each) | {"occurred_at": 0} == {
            "event_id": f"{sandbox_id}-snapshot-{each.exec.exec_id}",
            "sequence": 7,
            "sandbox_id": sandbox_id,
            "event_type": agbox().EXEC_STARTED,
            "occurred_at": 0,
            "replay": True,
            "snapshot": True,
            "sandbox_state": agbox().SANDBOX_STATE_READY,
            **exec_details(each.exec.exec_id, "RUNNING"),
        }


def test_the_replay_follows_the_snapshot_and_repeats_the_newest(shared):
    sandbox_id = shared.ready()
    found = read(shared.follow(sandbox_id, 1, snapshot=True), 3)
    assert [(e.sequence, e.snapshot) for e in found] == [(3, True), (2, False), (3, False)]


def test_a_subscription_does_not_end_with_the_sandbox(shared):
    sandbox_id = shared.deleted()
    stream = shared.follow(sandbox_id, seconds=1)
    found = []
    with pytest.raises(RpcError) as caught:
        found.extend(stream)
    assert caught.value.code().name == "DEADLINE_EXCEEDED"
    assert names(read(shared.follow(sandbox_id), 5))[-1] == "SANDBOX_DELETED"


def test_many_subscribers_see_the_same(shared):
    sandbox_id = shared.ready()
    streams = [shared.follow(sandbox_id) for _ in range(30)]
    for _ in range(3):
        shared.run(sandbox_id, *TRUE)
    first, *others = [read(s, 9) for s in streams]
    assert [e.sequence for e in first] == list(range(1, 10))
    assert all(o == first for o in others)


# -- the end of what is kept


@pytest.fixture(name="short_memory")
def fixture_short_memory(start_daemon, mode):
    """A daemon that forgets what is deleted almost at once."""
    return start_daemon(mode, config=SHORT)


SHORT = {"sandbox": {"cleanup_ttl": "300ms", "sweep": "50ms"}}


def test_a_subscription_ends_when_the_sandbox_is_forgotten(short_memory, connect):
    client = connect(short_memory)
    sandbox_id = client.ready()
    exec_id = client.run(sandbox_id, *TRUE).exec_id
    stream = client.follow(sandbox_id)
    client.box.DeleteSandbox(sandbox_id=sandbox_id)
    events = list(stream)
    assert names(events)[-1] == "SANDBOX_DELETED"
    assert [e.sequence for e in events] == list(range(1, len(events) + 1))
    for method in ("GetSandbox", "SubscribeSandboxEvents", "DeleteSandbox", "StopSandbox"):
        found = client.refused(method, sandbox_id=sandbox_id)
        assert (found.code, found.reason) == ("NOT_FOUND", "SANDBOX_NOT_FOUND")
    assert client.refused("GetExec", exec_id=exec_id).reason == "EXEC_NOT_FOUND"
    request = {"create_spec": {"image": "image"}, "sandbox_id": sandbox_id}
    assert client.refused("CreateSandbox", **request).reason == "SANDBOX_ID_ALREADY_EXISTS"
    other = client.ready()
    found = client.refused("CreateExec", sandbox_id=other, command=TRUE, exec_id=exec_id)
    assert found.reason == "EXEC_ID_ALREADY_EXISTS"
    listed = client.box.ListSandboxes(include_deleted=True).sandboxes
    assert sandbox_id not in [s.sandbox_id for s in listed]


def test_a_stopped_sandbox_is_cleaned_up(short_memory, connect):
    client = connect(short_memory)
    sandbox_id = client.ready()
    stream = client.follow(sandbox_id)
    client.box.StopSandbox(sandbox_id=sandbox_id)
    events = list(stream)
    requested, deleted = events[-2:]
    assert names(events)[-2:] == ["SANDBOX_DELETE_REQUESTED", "SANDBOX_DELETED"]
    assert requested.sandbox_phase.reason == "cleanup_ttl"
    assert deleted.sandbox_phase.reason == "cleanup_ttl"


def busy_box(client):
    """Its time is short, but it has a command from then on."""
    while True:
        box = client.ready(idle_ttl={"seconds": 1})
        try:
            client.start(box, *FOREVER)
            return box
        except RpcError as error:  # the machine was busier than a second
            assert refusal_of(error).reason == "SANDBOX_NOT_READY"


def test_an_idle_sandbox_is_stopped(start_daemon, mode, connect):
    client = connect(start_daemon(mode, config={"sandbox": {"sweep": "50ms"}}))
    idle = client.ready(idle_ttl={"seconds": 1})
    awake = client.ready(idle_ttl={"seconds": 0})
    busy = busy_box(client)
    requested, stopped = client.until(idle, agbox().SANDBOX_STOPPED)[-2:]
    assert requested.event_type == agbox().SANDBOX_STOP_REQUESTED
    assert requested.sandbox_state == 0
    assert requested.sandbox_phase.reason == "idle_ttl"
    assert stopped.sandbox_phase.reason == "idle_ttl"
    for each in (awake, busy):
        assert state_name(client.get(each).state) == "READY"
    client.box.ResumeSandbox(sandbox_id=idle)
    resumed = client.until(idle, agbox().SANDBOX_READY, after=stopped.sequence)[-1]
    again = client.until(idle, agbox().SANDBOX_STOPPED, after=resumed.sequence)[-1]
    passed = again.occurred_at.ToNanoseconds() - resumed.occurred_at.ToNanoseconds()
    assert passed >= 1_000_000_000, "a resume starts the clock anew"
