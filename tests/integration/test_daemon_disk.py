"""A full data directory: the daemon refuses requests that it cannot store; others continue.

When there is space again, all requests work.
"""

import contextlib
import subprocess

import grpc
import pytest
from agxtest.agbox import Client, refusal_of, unique
from agxtest.daemon import Daemon
from agxtest.protos import agbox
from agxtest.server import wait_for

MANY = 20000  # more creates than fit
LABELS = {"weight": "x" * 2000}


@pytest.fixture
def small_disk(tmp_path):
    """Mounts a separate file system of 16 MiB for the data."""
    data = tmp_path / "data"
    data.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=700", "agx", data], check=True)
    yield data
    subprocess.run(["umount", "--lazy", data], check=True)


@pytest.fixture
def daemon(tmp_path, small_disk):
    made = Daemon(tmp_path)
    yield made
    made.close()


@pytest.fixture
def client(daemon):
    with contextlib.closing(Client(daemon.channel())) as made:
        yield made


def fill(directory):
    """Fills all free space."""
    filler = directory / "filler"
    with filler.open("wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while file.write(b"\0" * 65536):
                pass
        with contextlib.suppress(OSError):
            while file.write(b"\0" * 512):
                pass
    return filler


def create_until_refused(client):
    """The accepted ids, and the first refusal."""
    accepted = []
    for _ in range(MANY):
        name = unique("box")
        try:
            client.create(name, labels=LABELS)
        except grpc.RpcError as error:
            return accepted, refusal_of(error)
        accepted.append(name)
    raise AssertionError("the disk never filled up")


def can_create(client):
    with contextlib.suppress(grpc.RpcError):
        return client.create(labels=LABELS)
    return None


def test_a_full_disk_refuses_writes_serves_reads_and_recovers_by_itself(daemon, client, small_disk):
    before = client.ready()
    filler = fill(small_disk)
    accepted, refusal = create_until_refused(client)
    assert refusal.code == "RESOURCE_EXHAUSTED" and refusal.reason == ""
    assert "space" in refusal.message or "full" in refusal.message, refusal
    # Reads and subscriptions continue.
    assert client.get(before).state == agbox().SANDBOX_STATE_READY
    assert len(client.history(before)) == client.get(before).last_event_sequence
    assert {s.sandbox_id for s in client.box.ListSandboxes().sandboxes} == {before, *accepted}
    assert client.box.Ping().daemon == "agentixd"
    # With space, and without a restart: new requests are accepted, and accepted ones complete.
    filler.unlink()
    made = wait_for(lambda: can_create(client), "creates are taken again")
    for name in (*accepted, made.sandbox_id):
        client.until(name, agbox().SANDBOX_READY)


def test_what_was_accepted_before_the_disk_was_full_is_there_after_a_kill(
    daemon, client, small_disk
):
    filler = fill(small_disk)
    accepted, _ = create_until_refused(client)
    daemon.kill()
    daemon.start()
    with contextlib.closing(Client(daemon.channel())) as again:
        assert {s.sandbox_id for s in again.box.ListSandboxes().sandboxes} == set(accepted)
        filler.unlink()
        for name in accepted:
            again.until(name, agbox().SANDBOX_READY)


def test_an_exec_that_cannot_be_stored_is_refused_and_starts_nothing(daemon, client, small_disk):
    box = client.ready()
    filler = fill(small_disk)
    create_until_refused(client)
    name = unique("run")
    try:
        client.start(box, "true", exec_id=name)
    except grpc.RpcError as error:
        assert refusal_of(error).code in ("RESOURCE_EXHAUSTED", "FAILED_PRECONDITION")
        assert daemon.world.effects("exec-start", box, name) == 0
    filler.unlink()
    wait_for(lambda: can_create(client), "requests are taken again")
    assert client.run(box, "true").state == agbox().EXEC_STATE_FINISHED
