"""Changes of a sandbox without a request: its main process dies, it is lost, a companion fails."""

import pytest
from agxtest.agbox import names, state_name, unique
from agxtest.protos import agbox
from agxtest.server import wait_for

CRASH = {"crash": {"window": "300ms", "first_retry": "10ms", "max_retry": "20ms"}}
QUICK_LOOK = {"sandbox": {"look": "50ms"}}


def failed(client, sandbox_id):
    """The details of the event that tells of the failure, which the handle repeats."""
    event = client.until(sandbox_id, agbox().SANDBOX_FAILED)[-1]
    handle = client.get(sandbox_id)
    assert state_name(handle.state) == "FAILED"
    assert handle.error_code == event.sandbox_phase.error_code
    assert handle.error_message == event.sandbox_phase.error_message
    return event.sandbox_phase


def test_a_main_process_that_dies_is_started_again(client, world):
    box = client.ready()
    world.script(f"now die {box}")
    wait_for(lambda: world.effects("start", box) == 2, "it is started again")
    assert state_name(client.get(box).state) == "READY"
    assert names(client.history(box))[-1] == "SANDBOX_READY"


@pytest.mark.parametrize(
    ("death", "code", "text"),
    [
        ("die", "CONTAINER_CRASHLOOP", "primary container exited"),
        ("oom", "CONTAINER_OOM", "primary container OOM killed"),
    ],
)
def test_one_that_dies_again_and_again_has_failed(start_daemon, mode, connect, death, code, text):
    daemon = start_daemon(mode, config=CRASH)
    client, box = connect(daemon), unique("crash")
    daemon.world.script(f"create {box} {death} 1ms", f"revive {box} {death} 1ms")
    client.create(box)
    said = failed(client, box)
    assert said.error_code == code
    assert said.error_message.startswith(text)
    assert client.deleted(box)


def test_one_that_is_lost_has_failed(client, world):
    box = client.ready()
    world.lose(box)
    said = failed(client, box)
    assert said.error_code == "CONTAINER_NOT_RUNNING"
    want = "primary container not running (detected during reconciliation)"
    assert said.error_message == want
    assert client.deleted(box)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ("ready", "primary container not running after daemon restart"),
        ("stopped", "primary container missing after daemon restart"),
    ],
)
def test_one_that_is_lost_without_a_daemon_has_failed(daemon, client, connect, state, text):
    box = getattr(client, state)()
    daemon.kill()
    daemon.world.lose(box)
    daemon.start()
    client = connect(daemon)
    said = failed(client, box)
    assert (said.error_code, said.error_message) == ("CONTAINER_NOT_RUNNING", text)
    assert client.deleted(box)


def test_a_companion_that_fails_is_told_of_once(start_daemon, mode, connect):
    daemon = start_daemon(mode, config=CRASH | QUICK_LOOK)
    client = connect(daemon)
    box = client.ready(companion_containers=[{"name": "db", "image": "a"}])
    daemon.world.script(f"revive {box} companion-fail 0 broken", f"now companion-die {box} 0")
    event = client.until(box, agbox().COMPANION_CONTAINER_FAILED)[-1]
    assert event.companion_container.name == "db"
    assert event.companion_container.error_code == "CONTAINER_CRASHLOOP"
    assert event.sandbox_state == agbox().SANDBOX_STATE_READY
    assert state_name(client.get(box).state) == "READY"
    client.run(box, "sleep", "300ms")  # in which the daemon looks several times
    assert names(client.history(box)).count("COMPANION_CONTAINER_FAILED") == 1
