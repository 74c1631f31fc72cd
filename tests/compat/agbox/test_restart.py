"""The daemon is killed during operations; the next one continues all accepted requests."""

import pytest
from agxtest.agbox import names, state_name
from agxtest.protos import agbox
from agxtest.server import wait_for
from agxtest.world import FOREVER, STUBBORN, TRUE


def restarted(daemon, connect):
    daemon.restart()
    return connect(daemon)


def runs(daemon, box, exec_id):
    wait_for(lambda: daemon.world.effects("exec-start", box, exec_id), "the command runs")


def gapless(client, sandbox_id):
    events = client.history(sandbox_id)
    assert [e.sequence for e in events] == list(range(1, len(events) + 1))
    return events


@pytest.mark.parametrize("verb", ["create", "stop", "resume", "delete"])
def test_what_was_accepted_is_carried_on(daemon, client, connect, verb):
    box, target = "carried", {"stop": "STOPPED", "delete": "DELETED"}.get(verb, "READY")
    if verb == "create":
        hold = daemon.world.hold(verb, box)
        client.create(box)
        client.until(box, agbox().SANDBOX_PREPARING)
    else:
        client.ready(box)
        if verb == "resume":
            client.box.StopSandbox(sandbox_id=box)
            client.until(box, agbox().SANDBOX_STOPPED)
        hold = daemon.world.hold(verb, box)
        getattr(client.box, f"{verb.title()}Sandbox")(sandbox_id=box)
    hold.begun()
    before = client.history(box)
    client = restarted(daemon, connect)
    assert client.history(box)[: len(before)] == before
    hold.release()
    state = getattr(agbox(), f"SANDBOX_{target}")
    client.until(box, state, after=len(before))
    assert state_name(client.get(box).state) == target
    types = names(gapless(client, box))
    requests = {"stop": "SANDBOX_STOP_REQUESTED", "delete": "SANDBOX_DELETE_REQUESTED"}
    assert types.count(requests.get(verb, f"SANDBOX_{target}")) in (1, 2)
    assert types.count("SANDBOX_FAILED") == 0
    if verb == "create":
        assert types.count("SANDBOX_ACCEPTED") == 1
        assert daemon.world.effects("make", box) == 1, "it was made twice"


def test_states_and_events_are_as_they_were(daemon, client, connect):
    ready, stopped, deleted = client.ready(), client.stopped(), client.deleted()
    ids = (ready, stopped, deleted)
    handles = {each: client.get(each) for each in ids}
    events = {each: client.history(each) for each in ids}
    client = restarted(daemon, connect)
    for each in ids:
        assert client.get(each) == handles[each]
        assert client.history(each) == events[each]
    client.run(ready, *TRUE)
    client.box.ResumeSandbox(sandbox_id=stopped)
    client.until(stopped, agbox().SANDBOX_READY, after=handles[stopped].last_event_sequence)
    for each in (ready, stopped):
        assert gapless(client, each)[: len(events[each])] == events[each]
    request = {"create_spec": {"image": "image"}, "sandbox_id": deleted}
    assert client.refused("CreateSandbox", **request).reason == "SANDBOX_ID_ALREADY_EXISTS"


def test_the_exit_code_of_a_command_is_not_lost(daemon, client, connect):
    box = client.ready()
    made = client.start(box, "sh", "-c", "cat; echo done; exit 7", stdin=True)
    runs(daemon, box, made.exec_id)
    client = restarted(daemon, connect)
    assert client.exec(made.exec_id).state == agbox().EXEC_STATE_RUNNING
    assert [e.exec_id for e in client.box.ListActiveExecs().execs] == [made.exec_id]
    client.control.WriteExecInput([{"exec_id": made.exec_id, "eof": True}])
    ended = client.ended(made.exec_id)
    assert (ended.state, ended.exit_code) == (agbox().EXEC_STATE_FAILED, 7)
    with open(made.stdout_log_path) as log:
        assert log.read() == "done\n"
    types = names(gapless(client, box))
    assert types.count("EXEC_STARTED") == types.count("EXEC_FAILED") == 1
    assert daemon.world.effects("exec-start", box, made.exec_id) == 1, "it was started twice"


def test_a_command_that_ends_without_a_daemon_keeps_its_exit_code(daemon, client, connect):
    box = client.ready()
    exec_id = client.start(box, "sh", "-c", "sleep 300ms; exit 9").exec_id
    runs(daemon, box, exec_id)
    daemon.kill()
    wait_for(lambda: daemon.world.effects("exec-exit", box, exec_id), "the command has ended")
    daemon.start()
    ended = connect(daemon).ended(exec_id)
    assert (ended.state, ended.exit_code) == (agbox().EXEC_STATE_FAILED, 9)


def test_a_cancel_is_carried_on(daemon, client, connect):
    box = client.ready()
    exec_id = client.start(box, *STUBBORN).exec_id
    runs(daemon, box, exec_id)
    client.box.CancelExec(exec_id=exec_id)
    client = restarted(daemon, connect)
    assert client.ended(exec_id).state == agbox().EXEC_STATE_CANCELLED


def test_a_deadline_holds_over_a_restart(daemon, client, connect):
    box = client.ready()
    exec_id = client.start(box, *FOREVER, deadline={"seconds": 1}).exec_id
    client = restarted(daemon, connect)
    assert client.ended(exec_id).exit_code == 137


def test_execs_of_before_are_readable(daemon, client, connect):
    box = client.ready()
    one = client.run(box, *TRUE, cwd="/tmp", env_overrides={"A": "1"})
    client = restarted(daemon, connect)
    assert client.exec(one.exec_id) == one
    found = client.refused("CreateExec", sandbox_id=box, command=TRUE, exec_id=one.exec_id)
    assert found.reason == "EXEC_ID_ALREADY_EXISTS"


def test_many_restarts_leave_no_gap(daemon, connect):
    client = connect(daemon)
    box = client.ready()
    for _ in range(5):
        client.start(box, *TRUE)
        client.box.CreateSandbox(create_spec={"image": "image"})
        client = restarted(daemon, connect)
    for exec_id in [e.exec_id for e in client.box.ListActiveExecs().execs]:
        client.ended(exec_id)
    types = names(gapless(client, box))
    assert types.count("EXEC_STARTED") == 5
    for sandbox in client.box.ListSandboxes().sandboxes:
        client.until(sandbox.sandbox_id, agbox().SANDBOX_READY)
        gapless(client, sandbox.sandbox_id)


def test_a_sandbox_that_is_gone_has_failed(daemon, client, connect):
    box = client.ready()
    daemon.kill()
    daemon.world.lose(box)
    daemon.start()
    client = connect(daemon)
    failed = client.until(box, agbox().SANDBOX_FAILED)[-1]
    assert failed.sandbox_phase.error_code == "CONTAINER_NOT_RUNNING"
    assert client.deleted(box)


def test_the_end_of_the_daemon_leaves_sandboxes_alone(daemon, client, connect):
    box = client.ready()
    exec_id = client.start(box, *FOREVER).exec_id
    stream = client.follow(box)
    next(stream)
    assert daemon.stop() < 20, "an open stream holds the end up"
    assert not daemon.socket.exists()
    daemon.start()
    client = connect(daemon)
    assert state_name(client.get(box).state) == "READY"
    assert client.exec(exec_id).state == agbox().EXEC_STATE_RUNNING
    client.box.CancelExec(exec_id=exec_id)
    assert client.ended(exec_id).state == agbox().EXEC_STATE_CANCELLED
