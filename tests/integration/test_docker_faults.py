"""kill -9 of agentixd, of dockerd, of containers and of processes in them, during operations, on a
real Docker Engine: accepted operations continue, exit codes are correct, nothing is left behind."""

import contextlib
import os
import shutil
import signal
import threading
import time

import pytest
from agxtest import nft
from agxtest.agbox import state_name, unique
from agxtest.protos import agbox
from agxtest.server import wait_for
from docker_fixtures import *  # noqa: F403

pytestmark = pytest.mark.deadline(150)
# Seconds from the request to the kill; a create takes some 300 ms if nothing else runs.
MOMENTS = [0, 0.05, 0.1, 0.2, 0.3]
LATER = ("sh", "-c", "echo one; sleep 1.5; echo two; exit 9")


def settles(stage, sandbox_id, *wanted, seconds=60):
    """Waits for one of these states and says which it is."""

    def found():
        handle = stage.client.get(sandbox_id)
        name = state_name(handle.state)
        if name == "FAILED":
            print(f"'{sandbox_id}' has failed: {handle.error_code} {handle.error_message}")
        return name if name in wanted else None

    return wait_for(found, f"'{sandbox_id}' becomes {wanted}", seconds)


def has_only(stage, containers, networks):
    """Waits until the engine has only so many objects: the daemon removes what was made late."""
    wait_for(
        lambda: (
            (len(stage.engine.containers()), len(stage.engine.networks())) == (containers, networks)
        ),
        f"{containers} containers and {networks} networks are there",
        60,
    )


def read(answer):
    """The output of a command."""
    with open(answer.stdout_log_path) as log:
        return log.read()


def process_of(stage, sandbox_id, needle):
    """The pid of a process in the sandbox whose command line contains this."""
    top = stage.engine.call("GET", f"/containers/{stage.primary(sandbox_id)}/top")
    column = top["Titles"].index("PID")
    found = [int(p[column]) for p in top["Processes"] if needle in p[-1] and "init" not in p[-1]]
    return found[0] if found else None


# -- agentixd


@pytest.mark.parametrize("moment", MOMENTS)
def test_create_is_carried_on(stage, moment):
    box = unique("box")
    stage.create(box)
    time.sleep(moment)
    stage.restart()
    assert settles(stage, box, "READY", "FAILED") == "READY"
    has_only(stage, 1, 1)
    assert stage.runs(box) == 0


def test_create_with_a_companion_is_carried_on_without_a_second_one(stage):
    box = unique("box")
    companions = [{"name": "db", "image": BUSYBOX}]  # noqa: F405
    stage.create(box, companion_containers=companions)
    time.sleep(0.2)
    stage.restart()
    settles(stage, box, "READY")
    has_only(stage, 2, 1)


def test_command_reports_its_true_exit_code(stage):
    box = stage.ready()
    runs, ends = stage.client.start(box, *LATER), stage.client.start(box, "sh", "-c", "exit 5")
    stage.daemon.kill()
    time.sleep(0.2)
    stage.start()
    assert stage.client.ended(runs.exec_id).exit_code == 9
    assert read(runs) == "one\ntwo\n"
    assert stage.client.ended(ends.exec_id).exit_code == 5


def test_command_that_ends_while_no_daemon_runs_reports_its_true_exit_code(stage):
    box = stage.ready()
    run = stage.client.start(box, *LATER)
    stage.daemon.kill()
    time.sleep(2)
    stage.start()
    assert stage.client.ended(run.exec_id).exit_code == 9
    assert read(run) == "one\ntwo\n"


@pytest.mark.parametrize("moment", [0, 0.05, 0.15])
def test_stop_is_carried_on(stage, moment):
    box = stage.ready()
    stage.client.box.StopSandbox(sandbox_id=box)
    time.sleep(moment)
    stage.restart()
    settles(stage, box, "STOPPED")
    assert not stage.inspect(box)["State"]["Running"]


@pytest.mark.parametrize("moment", [0, 0.05, 0.15])
def test_delete_is_carried_on(stage, moment):
    box = stage.ready()
    stage.client.box.DeleteSandbox(sandbox_id=box)
    time.sleep(moment)
    stage.restart()
    settles(stage, box, "DELETED")
    assert stage.engine.containers() == stage.engine.networks() == []


class Hooked:
    """A sandbox with a companion. The test decides when the companion becomes healthy; then its
    commands run in the primary and write into /tmp/hook."""

    def __init__(self, stage, *commands):
        self.stage, self.box = stage, unique("box")
        check = {"test": ["CMD-SHELL", "test -e /tmp/well"], "interval": {"nanos": 200_000_000}}
        check |= {"retries": 500}
        db = {"name": "db", "image": BUSYBOX, "healthcheck": check}  # noqa: F405
        db |= {"post_start_on_primary": commands, "envs": {"WORD": "word"}}
        stage.ready(self.box, companion_containers=[db])

    def heal(self):
        self.stage.engine.run("exec", f"agentix-{self.box}.db", "touch", "/tmp/well")

    def wrote(self):
        words = ("exec", self.stage.primary(self.box), "cat", "/tmp/hook")
        return self.stage.engine.run(*words, check=False).split()


def test_command_of_a_companion_that_was_waited_for_runs_after_a_restart_and_once(stage):
    hooked = Hooked(stage, 'echo "$WORD" >>/tmp/hook', "echo last >>/tmp/hook")
    stage.restart()
    assert hooked.wrote() == []
    hooked.heal()
    wait_for(lambda: hooked.wrote() == ["word", "last"], "they run", 60)
    stage.restart()
    assert stage.runs(hooked.box) == 0
    assert hooked.wrote() == ["word", "last"]


def test_command_of_a_companion_that_runs_goes_on_and_the_next_follows(stage):
    first = (
        "echo begun >>/tmp/hook; while ! [ -e /tmp/go ]; do sleep 0.1; done; echo done >>/tmp/hook"
    )
    hooked = Hooked(stage, first, "echo next >>/tmp/hook")
    hooked.heal()
    wait_for(lambda: hooked.wrote() == ["begun"], "it runs", 60)
    stage.restart()
    assert stage.runs(hooked.box, "touch", "/tmp/go") == 0
    wait_for(lambda: hooked.wrote() == ["begun", "done", "next"], "the next one runs", 60)


def test_command_of_a_companion_does_not_run_when_the_sandbox_was_stopped_meanwhile(stage):
    hooked = Hooked(stage, "echo never >>/tmp/hook")
    stage.client.box.StopSandbox(sandbox_id=hooked.box)
    stage.restart()
    settles(stage, hooked.box, "STOPPED")
    stage.client.box.ResumeSandbox(sandbox_id=hooked.box)
    settles(stage, hooked.box, "READY")
    hooked.heal()
    stage.restart()
    state = f"agentix-{hooked.box}.db"
    wait_for(
        lambda: stage.engine.inspect(state)["State"]["Health"]["Status"] == "healthy",
        "the companion is healthy",
        60,
    )
    assert stage.runs(hooked.box) == 0
    assert hooked.wrote() == []


def add_dup_network(stage, sandbox_id):
    """Adds a second network with the same name, as a late request of a dead daemon does. Returns
    the ids of both, the sandbox's own first."""
    (own,) = stage.engine.networks()
    body = {"Name": own["Name"], "Labels": own["Labels"], "Driver": own["Driver"]}
    duplicate = stage.engine.call("POST", "/networks/create", body)
    assert stage.inspect(sandbox_id)["NetworkSettings"]["Networks"][own["Name"]]["NetworkID"]
    return own["Id"], duplicate["Id"]


def test_second_network_of_a_name_goes_and_the_sandbox_keeps_its_own(stage):
    box = stage.ready()
    own, _ = add_dup_network(stage, box)
    bridge = stage.engine.call("GET", f"/networks/{own}")["Options"][
        "com.docker.network.bridge.name"
    ]
    stage.restart()
    wait_for(lambda: len(stage.engine.networks()) == 1, "the other one is gone")
    assert stage.engine.networks()[0]["Id"] == own
    wait_for(lambda: bridge in nft.run("list ruleset"), "its own is firewalled")
    assert stage.runs(box) == 0


def test_second_network_of_a_name_does_not_keep_a_sandbox_from_its_resume(stage):
    box = stage.ready()
    stage.client.box.StopSandbox(sandbox_id=box)
    settles(stage, box, "STOPPED")
    own, _ = add_dup_network(stage, box)
    stage.client.box.ResumeSandbox(sandbox_id=box)
    settles(stage, box, "READY")
    assert [each["Id"] for each in stage.engine.networks()] == [own]
    assert stage.runs(box) == 0


def test_objects_without_a_record_are_removed_and_others_are_not(stage, engine):
    """The store is lost; the engine still has the sandbox, and a container that is not ours."""
    stage.ready()
    engine.run("run", "-d", "--name", "foreign", BUSYBOX, "sleep", "1000")  # noqa: F405
    try:
        stage.daemon.kill()
        shutil.rmtree(stage.daemon.data / "agentix" / "store")
        stage.start()
        wait_for(lambda: len(engine.containers()) == 1, "only the foreign one is left")
        wait_for(lambda: not engine.networks(), "nor a network")
        assert engine.inspect("foreign")["State"]["Running"]
    finally:
        engine.run("rm", "-f", "foreign")


# -- dockerd


@pytest.mark.parametrize("moment", [0.05, 0.2])
def test_engine_that_dies_during_a_create_leaves_it_whole_or_nothing(stage, engine, moment):
    box = unique("box")
    stage.create(box)
    time.sleep(moment)
    engine.kill()
    time.sleep(0.3)
    engine.start()
    if settles(stage, box, "READY", "FAILED") == "READY":
        # It may have been before the engine died, which killed it when it came back.
        wait_for(lambda: stage.runs(box) == 0, "commands run")


@pytest.mark.parametrize("mode", ["agentix", "agbox"])
def test_engine_that_kills_its_containers_loses_their_commands_and_no_sandbox(
    start_stage, engine, mode
):
    stage = start_stage(mode)
    box = stage.ready()
    run = stage.client.start(box, "sleep", "1000")
    engine.kill()
    engine.start()
    ended = stage.client.ended(run.exec_id)
    assert state_name(stage.state(box)) == "READY"
    assert (ended.state, ended.exit_code) == (agbox().EXEC_STATE_FAILED, -1)
    assert "main process" in ended.error
    wait_for(lambda: stage.inspect(box)["State"]["Running"], "it is started again")
    wait_for(lambda: stage.runs(box) == 0, "commands run again")


def test_engine_with_live_restore_dies_and_nobody_notices(stage, engine):
    box = stage.ready()
    run = stage.client.start(box, *LATER)
    engine.kill()
    engine.start("--live-restore")
    assert stage.client.ended(run.exec_id).exit_code == 9
    assert read(run) == "one\ntwo\n"
    assert stage.runs(box) == 0


@pytest.mark.parametrize("verb", ["Stop", "Delete"])
def test_engine_that_dies_during_a_stop_or_delete_comes_back_to_it(stage, engine, verb):
    box = stage.ready()
    getattr(stage.client.box, f"{verb}Sandbox")(sandbox_id=box)
    time.sleep(0.05)
    engine.kill()
    time.sleep(0.3)
    engine.start()
    settles(stage, box, {"Stop": "STOPPED", "Delete": "DELETED"}[verb], "FAILED")


def test_engine_that_hangs_holds_up_nobody_who_does_not_need_it(stage, engine):
    box, other = stage.ready(), unique("box")
    os.kill(engine.pid(), signal.SIGSTOP)
    try:
        stage.create(other)
        stage.client.box.Ping()
        assert stage.runs(box) == 0, "commands go by init, not by the engine"
    finally:
        os.kill(engine.pid(), signal.SIGCONT)
    settles(stage, other, "READY")


def test_both_die_at_a_time(stage, engine):
    box = stage.ready()
    creating = unique("box")
    stage.create(creating)
    time.sleep(0.1)
    stage.daemon.kill()
    engine.kill()
    engine.start()
    stage.start()
    settles(stage, creating, "READY", "FAILED")
    wait_for(lambda: stage.inspect(box)["State"]["Running"], "it is started again")
    assert state_name(stage.state(box)) == "READY"


# -- what runs in a sandbox


def test_command_that_somebody_kills_says_so(stage):
    box = stage.ready()
    run = stage.client.start(box, "sleep", "98765")
    pid = wait_for(lambda: process_of(stage, box, "98765"), "it runs")
    os.kill(pid, signal.SIGKILL)
    assert stage.client.ended(run.exec_id).exit_code == 137
    assert stage.runs(box) == 0


@pytest.mark.parametrize("mode", ["agentix", "agbox"])
def test_main_process_that_somebody_kills_is_started_again(start_stage, mode):
    stage = start_stage(mode)
    box = stage.ready(command=["sleep", "98765"])
    run = stage.client.start(box, "sleep", "1000")
    os.kill(wait_for(lambda: process_of(stage, box, "98765"), "it runs"), signal.SIGKILL)
    ended = stage.client.ended(run.exec_id)
    assert (ended.state, ended.exit_code) == (agbox().EXEC_STATE_FAILED, -1)
    assert ended.error
    wait_for(lambda: stage.inspect(box)["State"]["Running"], "it is started again")
    assert state_name(stage.state(box)) == "READY"
    wait_for(lambda: stage.runs(box) == 0, "commands run again")


def test_container_that_is_killed_during_commands_ends_them(stage, engine):
    box = stage.ready()
    runs = [stage.client.start(box, "sleep", "1000") for _ in range(5)]
    engine.run("kill", stage.primary(box))
    for run in runs:
        assert stage.client.ended(run.exec_id).state == agbox().EXEC_STATE_FAILED
    wait_for(lambda: stage.inspect(box)["State"]["Running"], "it is started again")
    wait_for(lambda: stage.runs(box) == 0, "commands run again")


def test_container_that_is_removed_during_a_command_fails_the_sandbox(stage, engine):
    box = stage.ready()
    run = stage.client.start(box, "sleep", "1000")
    engine.run("rm", "-f", stage.primary(box))
    assert stage.client.ended(run.exec_id).state == agbox().EXEC_STATE_FAILED
    settles(stage, box, "FAILED")
    assert stage.client.get(box).error_code == "CONTAINER_NOT_RUNNING"


@pytest.mark.parametrize("verb", ["Stop", "Delete"])
def test_container_that_is_removed_during_a_stop_or_delete_is_no_obstacle(stage, engine, verb):
    box = stage.ready(command=["sh", "-c", "trap '' TERM; while :; do sleep 1; done"])
    getattr(stage.client.box, f"{verb}Sandbox")(sandbox_id=box)
    with contextlib.suppress(Exception):  # the other one may be quicker
        engine.run("rm", "-f", stage.primary(box))
    settles(stage, box, "STOPPED", "DELETED", "FAILED")


# -- all of it


def test_daemon_that_dies_again_and_again_among_many_loses_nothing(stage):
    boxes = [unique("box") for _ in range(4)]
    for box in boxes:
        stage.create(box)
    for moment in (0.1, 0.3, 0.5):
        time.sleep(moment)
        stage.restart()
    for box in boxes:
        assert settles(stage, box, "READY", "FAILED") == "READY"
    has_only(stage, len(boxes), len(boxes))
    codes = {}

    def run(box):
        codes[box] = stage.runs(box, "sh", "-c", "exit 4")

    threads = [threading.Thread(target=run, args=(box,)) for box in boxes]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert set(codes.values()) == {4}
