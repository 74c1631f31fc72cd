"""Commands: the order of refusals, their ends, and the events about them."""

from pathlib import Path

import pytest
from agxtest.agbox import unique
from agxtest.protos import agbox
from agxtest.server import wait_for
from agxtest.world import FOREVER, FORKER, STUBBORN, TRUE, exits, says


@pytest.fixture(name="box", scope="module")
def fixture_box(shared):
    """A sandbox that is READY."""
    return shared.ready()


# -- refusals, in their order


def test_the_state_is_looked_at_before_the_command(shared):
    gone = shared.deleted()
    assert shared.refused("CreateExec", sandbox_id=gone).reason == "SANDBOX_NOT_READY"
    assert shared.refused("CreateExec", sandbox_id="nobody").reason == "SANDBOX_NOT_FOUND"


def test_an_empty_command_is_refused_before_the_id_is_looked_at(shared, box):
    found = shared.refused("CreateExec", sandbox_id=box, exec_id="x")
    assert (found.code, found.reason) == ("INVALID_ARGUMENT", "")
    assert found.message == "command must not be empty"


@pytest.mark.parametrize("short", ["x", "xyz"])
def test_a_short_id_is_refused(shared, box, short):
    found = shared.refused("CreateExec", sandbox_id=box, command=TRUE, exec_id=short)
    assert (found.code, found.reason) == ("INVALID_ARGUMENT", "")
    assert found.message == "exec_id must be at least 4 characters"


@pytest.mark.parametrize("bad", ["-xyz", "xyz_", "a b c", "a.b.c", "../../x", "x" * 201])
def test_an_id_of_other_characters_is_refused(shared, box, bad):
    found = shared.refused("CreateExec", sandbox_id=box, command=TRUE, exec_id=bad)
    assert (found.code, found.reason) == ("INVALID_ARGUMENT", "")
    assert "exec_id" in found.message


def test_an_exec_id_is_taken_for_ever_and_everywhere(shared, box):
    exec_id = unique("x")
    shared.run(box, *TRUE, exec_id=exec_id)
    other = shared.ready()
    for sandbox_id in (box, other):
        found = shared.refused("CreateExec", sandbox_id=sandbox_id, command=TRUE, exec_id=exec_id)
        assert (found.code, found.reason) == ("ALREADY_EXISTS", "EXEC_ID_ALREADY_EXISTS")
        assert found.message == f"exec_id {exec_id} already exists"
        assert found.metadata == {"exec_id": exec_id}
        assert found.domain == "agents-sandbox"
    sandbox_and_exec = unique("both")
    shared.ready(sandbox_and_exec)
    assert shared.start(box, *TRUE, exec_id=sandbox_and_exec).exec_id == sandbox_and_exec


# -- ends


def test_a_command_that_succeeds(shared, box):
    made = shared.start(box, *TRUE, cwd="/tmp", env_overrides={"A": "1"})
    ended = shared.ended(made.exec_id)
    assert (ended.state, ended.exit_code, ended.error) == (agbox().EXEC_STATE_FINISHED, 0, "")
    assert list(ended.command) == list(TRUE)
    assert ended.cwd == "/tmp"
    assert dict(ended.env_overrides) == {"A": "1"}
    assert ended.sandbox_id == box
    assert ended.last_event_sequence == shared.get(box).last_event_sequence


@pytest.mark.parametrize("code", [1, 3, 126, 127, 255])
def test_another_exit_code_is_a_failure(shared, box, code):
    ended = shared.run(box, *exits(code))
    assert (ended.state, ended.exit_code) == (agbox().EXEC_STATE_FAILED, code)
    assert ended.error == f"docker exec failed: exit code {code}"


def test_the_output_is_in_files_of_the_host(shared, shared_daemon, box):
    made = shared.start(box, *says("to out", "oops"))
    shared.ended(made.exec_id)
    out, err = Path(made.stdout_log_path), Path(made.stderr_log_path)
    assert out.is_absolute()
    assert out.name == f"{made.exec_id}.stdout.log"
    assert err.name == f"{made.exec_id}.stderr.log"
    assert out.parent == err.parent
    assert out.parent.name == box
    assert (out.read_text(), err.read_text()) == ("to out\n", "oops: not found\n")
    assert out.is_relative_to(shared_daemon.data)
    if shared_daemon.mode == "agbox":
        assert out.parents[1] == shared_daemon.data / "agents-sandbox" / "exec-logs"


def test_empty_words_and_odd_bytes_reach_the_command(shared, box):
    command = ("echo", "", "a b", "ü'\"\n")
    made = shared.start(box, *command)
    assert list(shared.ended(made.exec_id).command) == list(command)
    assert Path(made.stdout_log_path).read_text() == " a b ü'\"\n\n"


def test_the_environment_is_the_sandboxs_with_the_commands_over_it(shared):
    box = shared.ready(envs={"A": "box", "B": "box"})
    command = ("sh", "-c", "env A; env B; env C")
    made = shared.start(box, *command, env_overrides={"B": "exec", "C": "exec"})
    shared.ended(made.exec_id)
    assert Path(made.stdout_log_path).read_text() == "box\nexec\nexec\n"


def test_a_command_that_cannot_be_started(shared, shared_daemon):
    box = shared.ready()
    shared_daemon.world.fail("exec", box, "no such user")
    made = shared.start(box, *TRUE)
    ended = shared.ended(made.exec_id)
    assert (ended.state, ended.exit_code) == (agbox().EXEC_STATE_FAILED, 0)
    assert "no such user" in ended.error


def test_a_command_whose_sandbox_dies_is_lost(shared, shared_daemon):
    box = shared.ready()
    exec_id = shared.start(box, *FOREVER).exec_id
    shared.until(box, agbox().EXEC_STARTED)
    assert wait_for(lambda: shared_daemon.world.effects("exec-start", box, exec_id), "it runs")
    shared_daemon.world.script(f"now die {box}")
    ended = shared.ended(exec_id)
    assert (ended.state, ended.exit_code) == (agbox().EXEC_STATE_FAILED, -1)
    assert ended.error


# -- cancel


@pytest.mark.parametrize("command", [FOREVER, FORKER, STUBBORN])
def test_a_cancelled_command_is_gone_with_all_its_processes(shared, shared_daemon, box, command):
    made = shared.start(box, *command)
    assert shared.box.CancelExec(exec_id=made.exec_id).accepted
    ended = shared.ended(made.exec_id)
    assert (ended.state, ended.exit_code, ended.error) == (agbox().EXEC_STATE_CANCELLED, 0, "")
    assert shared_daemon.world.effects("exec-exit", box, made.exec_id) == 1


def test_an_ended_command_cannot_be_cancelled(shared, box):
    exec_id = shared.run(box, *TRUE).exec_id
    found = shared.refused("CancelExec", exec_id=exec_id)
    assert (found.code, found.reason) == ("FAILED_PRECONDITION", "EXEC_ALREADY_TERMINAL")
    assert found.message == f"exec {exec_id} is already terminal"
    assert found.metadata == {"exec_id": exec_id}


def test_a_second_cancel_is_accepted_without_an_event(start_daemon, mode, connect):
    client = connect(start_daemon(mode, config={"exec": {"grace": "10m"}}))
    box = client.ready()
    exec_id = client.start(box, *STUBBORN).exec_id
    assert client.box.CancelExec(exec_id=exec_id).accepted
    assert client.exec(exec_id).state == agbox().EXEC_STATE_RUNNING
    assert client.box.CancelExec(exec_id=exec_id).accepted
    client.box.StopSandbox(sandbox_id=box)  # which has no patience with it
    assert client.ended(exec_id).state == agbox().EXEC_STATE_CANCELLED
    types = [e.event_type for e in client.history(box)]
    assert types.count(agbox().EXEC_CANCELLED) == 1


# -- who runs


def active(client, **fields):
    return list(client.box.ListActiveExecs(**fields).execs)


def test_active_commands_are_listed_by_id(start_daemon, mode, connect):
    client = connect(start_daemon(mode))
    one, two = client.ready(), client.ready()
    ids = ["bbbb", "aaaa", "dddd", "cccc"]
    for exec_id, box in zip(ids, (one, one, two, two), strict=True):
        client.start(box, *FOREVER, exec_id=exec_id, env_overrides={"SECRET": "s"})
    client.run(one, *TRUE)
    found = active(client)
    assert [e.exec_id for e in found] == sorted(ids)
    assert all(e.state == agbox().EXEC_STATE_RUNNING for e in found)
    assert [e.exec_id for e in active(client, sandbox_id=one)] == ["aaaa", "bbbb"]
    assert found[0].last_event_sequence == client.get(one).last_event_sequence
    secrets = {"SECRET": "s"} if mode == "agbox" else {}
    assert all(dict(e.env_overrides) == secrets for e in found)


def test_the_presence_of_the_filter_counts(shared, box):
    exec_id = shared.start(box, *FOREVER).exec_id
    assert exec_id in [e.exec_id for e in active(shared)]
    assert exec_id in [e.exec_id for e in active(shared, sandbox_id=box)]
    assert active(shared, sandbox_id="") == []
    assert active(shared, sandbox_id="nobody-there") == []
    shared.box.CancelExec(exec_id=exec_id)
    shared.ended(exec_id)
    assert exec_id not in [e.exec_id for e in active(shared)]


def test_a_stop_ends_commands(shared):
    box = shared.ready()
    exec_id = shared.start(box, *FOREVER).exec_id
    shared.box.StopSandbox(sandbox_id=box)
    events = shared.until(box, agbox().SANDBOX_STOPPED)
    ended = shared.exec(exec_id)
    assert (ended.state, ended.exit_code) == (agbox().EXEC_STATE_FAILED, 137)
    failed = [e for e in events if e.event_type == agbox().EXEC_FAILED]
    assert [e.exec.error_code for e in failed] == ["EXEC_RUN_FAILED"]
    assert failed[0].exec.exit_code == 137
    assert failed[0].exec.error_message == ended.error
