"""The published Python SDK of agents-sandbox, unchanged.

It runs in its own environment (tests/compat/peers). At the path where it expects the daemon's
socket is ours, because of --compat agbox or through a link.
"""

import asyncio
import datetime
from pathlib import Path

import agents_sandbox as sdk
import pytest
from agents_sandbox import AgentsSandboxClient, ExecState, SandboxEventType, SandboxState
from agxtest.world import FOREVER, TRUE, exits, says


@pytest.fixture(name="socket")
def fixture_socket(daemon, monkeypatch):
    """The daemon, where the SDK looks for it."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(daemon.runtime))
    if daemon.mode != "agbox":
        daemon.agbox_socket.parent.mkdir()
        daemon.agbox_socket.symlink_to(daemon.own_socket)
    return daemon.agbox_socket


@pytest.fixture(name="use")
def fixture_use(socket):
    """use(function): runs `async def function(client)` with a client of the daemon."""

    def run(function, **options):
        async def whole():
            # Its default of 5 s for a call is short on a machine with other work.
            async with AgentsSandboxClient(**({"timeout_seconds": 60} | options)) as client:
                assert client.socket_path == str(socket)
                return await function(client)

        return asyncio.run(whole())

    return run


def test_the_client_pings(use, mode):
    async def ping(client):
        return await client.ping()

    answer = use(ping)
    assert answer.daemon == {"agentix": "agentixd", "agbox": "agboxd"}[mode]
    assert answer.version


def test_a_sandbox_goes_through_its_life(use):
    async def life(client):
        made = await client.create_sandbox(
            image="image", sandbox_id="sdk-box", labels={"a": "1"}, idle_ttl=datetime.timedelta(0)
        )
        assert (made.sandbox_id, made.state, made.labels) == (
            "sdk-box",
            SandboxState.READY,
            {"a": "1"},
        )
        assert made.created_at is not None
        assert made.state_changed_at >= made.created_at
        assert (await client.get_sandbox("sdk-box")) == made
        assert [s.sandbox_id for s in await client.list_sandboxes()] == ["sdk-box"]
        assert (await client.stop_sandbox("sdk-box")).state == SandboxState.STOPPED
        assert (await client.resume_sandbox("sdk-box")).state == SandboxState.READY
        assert (await client.delete_sandbox("sdk-box")).state == SandboxState.DELETED
        assert await client.list_sandboxes() == []
        gone = await client.list_sandboxes(include_deleted=True)
        assert [s.state for s in gone] == [SandboxState.DELETED]

    use(life)


def test_operations_need_not_be_waited_for(use, daemon):
    async def life(client):
        hold = daemon.world.hold("create", "sdk-box")
        made = await client.create_sandbox(image="image", sandbox_id="sdk-box", wait=False)
        assert (made.state, made.last_event_sequence) == (SandboxState.PENDING, 1)
        hold.release()
        assert await until(client, "sdk-box", SandboxEventType.SANDBOX_READY)
        stopping = await client.stop_sandbox("sdk-box", wait=False)
        assert stopping.state in (SandboxState.READY, SandboxState.STOPPED)
        assert await until(client, "sdk-box", SandboxEventType.SANDBOX_STOPPED)
        resumed = await client.resume_sandbox("sdk-box", wait=False)
        assert resumed.state in (SandboxState.PENDING, SandboxState.READY)
        deleted = await client.delete_sandbox("sdk-box", wait=False)
        assert deleted.state in (SandboxState.DELETING, SandboxState.DELETED)
        assert await until(client, "sdk-box", SandboxEventType.SANDBOX_DELETED)

    use(life)


async def until(client, sandbox_id, event_type, **options):
    """Events up to the first of a type."""
    found = []
    stream = client.subscribe_sandbox_events(sandbox_id, **options)
    async for event in stream:
        found.append(event)
        if event.event_type == event_type:
            await stream.aclose()
            return found
    raise AssertionError(f"the stream ended behind {found}")


def test_events_are_converted(use):
    async def follow(client):
        await client.create_sandbox(image="image", sandbox_id="sdk-box")
        run = await client.run("sdk-box", exits(4))
        events = await until(client, "sdk-box", SandboxEventType.EXEC_FAILED)
        assert [e.sequence for e in events] == [1, 2, 3, 4, 5]
        assert [e.event_id for e in events] == [f"sdk-box-{n}" for n in range(1, 6)]
        assert all(e.replay and not e.snapshot for e in events)
        states = [e.sandbox_state for e in events]
        pending, ready = SandboxState.PENDING, SandboxState.READY
        assert states == [pending, pending, ready, None, None]
        assert events[0].sandbox_phase is None
        assert events[1].sandbox_phase.phase == "materialize"
        assert events[4].exec == sdk.ExecEventDetails(
            exec_id=run.exec_id,
            exit_code=4,
            exec_state=ExecState.FAILED,
            error_code="EXEC_RUN_FAILED",
            error_message="docker exec failed: exit code 4",
        )
        later = await until(client, "sdk-box", SandboxEventType.EXEC_FAILED, from_sequence=3)
        assert later == events[3:]
        snapshot = client.subscribe_sandbox_events(
            "sdk-box", from_sequence=5, include_current_snapshot=True
        )
        first = await anext(snapshot)
        await snapshot.aclose()
        assert (first.sequence, first.snapshot) == (5, True)

    use(follow)


def test_commands_run(use):
    async def commands(client):
        await client.create_sandbox(image="image", sandbox_id="sdk-box")
        good = await client.run("sdk-box", TRUE, env_overrides={"A": "1"})
        assert (good.state, good.exit_code, good.error) == (ExecState.FINISHED, 0, None)
        assert (good.command, good.cwd, good.env_overrides) == (TRUE, "/workspace", {"A": "1"})
        bad = await client.run("sdk-box", exits(3))
        assert (bad.state, bad.exit_code) == (ExecState.FAILED, 3)
        assert bad.error == "docker exec failed: exit code 3"
        said = await client.create_exec("sdk-box", says("out", "oops"), wait=True)
        logs = (said.stdout_log_path, said.stderr_log_path)
        named = await client.create_exec("sdk-box", FOREVER, exec_id="sdk-exec")
        assert (named.exec_id, named.state, named.exit_code) == (
            "sdk-exec",
            ExecState.RUNNING,
            None,
        )
        active = await client.list_active_execs()
        assert [e.exec_id for e in active] == ["sdk-exec"]
        assert await client.list_active_execs(sandbox_id="sdk-box") == active
        assert await client.list_active_execs(sandbox_id="nobody") == []
        gone = await client.cancel_exec("sdk-exec")
        assert (gone.state, gone.exit_code, gone.error) == (ExecState.CANCELLED, 0, None)
        assert (await client.get_exec("sdk-exec")).state == ExecState.CANCELLED
        assert await client.list_active_execs() == []
        return logs

    out, err = use(commands)
    assert (Path(out).read_text(), Path(err).read_text()) == ("out\n", "oops: not found\n")


def test_a_cancel_need_not_be_waited_for(use):
    async def cancel(client):
        await client.create_sandbox(image="image", sandbox_id="sdk-box")
        await client.create_exec("sdk-box", FOREVER, exec_id="sdk-exec")
        asked = await client.cancel_exec("sdk-exec", wait=False)
        assert asked.state in (ExecState.RUNNING, ExecState.CANCELLED)
        await until(client, "sdk-box", SandboxEventType.EXEC_CANCELLED)

    use(cancel)


def test_many_at_once(use):
    async def many(client):
        ids = [f"sdk-{n}" for n in range(8)]
        await asyncio.gather(*(client.create_sandbox(image="image", sandbox_id=i) for i in ids))
        ran = await asyncio.gather(*(client.run(i, exits(n)) for n, i in enumerate(ids)))
        assert [r.exit_code for r in ran] == list(range(8))
        await asyncio.gather(*(client.delete_sandbox(i) for i in ids))

    use(many)


def test_delete_by_labels_waits_for_all(use):
    async def delete(client):
        for n, label in enumerate("xxy"):
            await client.create_sandbox(image="image", sandbox_id=f"sdk-{n}", labels={"l": label})
        result = await client.delete_sandboxes({"l": "x"})
        assert result == sdk.DeleteSandboxesResult(("sdk-0", "sdk-1"), 2)
        assert [s.sandbox_id for s in await client.list_sandboxes()] == ["sdk-2"]
        none = await client.delete_sandboxes({"l": "z"})
        assert none == sdk.DeleteSandboxesResult((), 0)
        some = await client.list_sandboxes(include_deleted=True, label_selector={"l": "x"})
        assert {s.state for s in some} == {SandboxState.DELETED}
        with pytest.raises(sdk.SandboxClientError, match="label_selector must not be empty"):
            await client.delete_sandboxes({})

    use(delete)


def test_a_whole_spec_goes_through(use, tmp_path, mode):
    (tmp_path / "source").mkdir()
    source = str(tmp_path / "source")
    companion = sdk.CompanionContainerSpec(
        name="db",
        image="postgres",
        envs={"E": "1"},
        healthcheck=sdk.HealthcheckConfig(
            test=("CMD", "true"), interval=datetime.timedelta(seconds=1.5), retries=2
        ),
        command=("postgres",),
        post_start_on_primary=("true",),
        cpu_limit="1",
        memory_limit="64m",
        disk_limit="1g",
    )

    async def create(client):
        made = await client.create_sandbox(
            config_yaml="labels: {from: yaml}\ncompanion_containers: {aa: {image: a}}\n",
            image="image",
            mounts=(sdk.MountSpec(source, "/m", writable=True),),
            copies=(sdk.CopySpec(source, "/c", exclude_patterns=("*.o",)),),
            ports=(sdk.PortMapping(80, 18080), sdk.PortMapping(53, 15353, "UDP")),
            builtin_tools=("uv",),
            command=("sleep", "600"),
            companion_containers=(companion,),
            labels={"and": "spec"},
            envs={"E": "2"},
            cpu_limit="0.5",
            memory_limit="64m",
            disk_limit="1g",
        )
        assert made.labels == {"from": "yaml", "and": "spec"}
        first, second = made.companion_containers
        assert (first.name, second.name) == ("aa", "db")
        assert second.healthcheck == companion.healthcheck
        assert (second.command, second.cpu_limit) == (("postgres",), "1")
        assert second.envs == ({"E": "1"} if mode == "agbox" else {})

    use(create)


# -- errors


def test_each_typed_error_is_raised(use):
    async def errors(client):
        await client.create_sandbox(image="image", sandbox_id="sdk-box")
        await client.create_exec("sdk-box", TRUE, exec_id="sdk-exec", wait=True)
        with pytest.raises(sdk.SandboxNotFoundError) as missing:
            await client.get_sandbox("nobody")
        assert missing.value.sandbox_id == "nobody"
        with pytest.raises(sdk.SandboxConflictError) as taken:
            await client.create_sandbox(image="image", sandbox_id="sdk-box")
        assert taken.value.sandbox_id == "sdk-box"
        with pytest.raises(sdk.SandboxConflictError):
            await client.create_exec("sdk-box", TRUE, exec_id="sdk-exec")
        with pytest.raises(sdk.ExecNotFoundError) as no_exec:
            await client.get_exec("nothing")
        assert no_exec.value.exec_id == "nothing"
        with pytest.raises(sdk.ExecNotFoundError):
            await client.cancel_exec("nothing")
        with pytest.raises(sdk.ExecAlreadyTerminalError) as ended:
            await client.cancel_exec("sdk-exec")
        assert ended.value.exec_id == "sdk-exec"
        with pytest.raises(sdk.SandboxInvalidStateError, match="sandbox sdk-box is not stopped"):
            await client.resume_sandbox("sdk-box")
        with pytest.raises(sdk.SandboxSequenceExpiredError) as expired:
            await until(client, "sdk-box", None, from_sequence=1000)
        assert (expired.value.sandbox_id, expired.value.from_sequence) == ("sdk-box", 1000)
        await client.stop_sandbox("sdk-box")
        with pytest.raises(sdk.SandboxNotReadyError) as idle:
            await client.run("sdk-box", TRUE)
        assert idle.value.sandbox_id == "sdk-box"
        with pytest.raises(sdk.SandboxInvalidStateError, match="sandbox sdk-box is not ready"):
            await client.stop_sandbox("sdk-box")
        for call in (client.stop_sandbox, client.resume_sandbox, client.delete_sandbox):
            with pytest.raises(sdk.SandboxNotFoundError):
                await call("nobody")
        with pytest.raises(sdk.SandboxNotFoundError):
            await client.run("nobody", TRUE)
        with pytest.raises(sdk.SandboxNotFoundError):
            await until(client, "nobody", None)

    use(errors)


@pytest.mark.parametrize(
    ("request_fields", "message"),
    [
        ({"image": ""}, "create_spec.image is required"),
        ({"image": "a", "sandbox_id": "x"}, "sandbox_id must be at least 4 characters"),
        ({"image": "a", "builtin_tools": ("zz",)}, 'unknown builtin resource "zz"'),
        ({"config_yaml": "nonsense: 1"}, "invalid config_yaml: .*nonsense"),
        ({"image": "a", "idle_ttl": datetime.timedelta(seconds=-1)}, "idle_ttl must not"),
    ],
)
def test_other_refusals_show_the_daemons_message(use, request_fields, message):
    async def create(client):
        with pytest.raises(sdk.SandboxClientError, match=message) as caught:
            await client.create_sandbox(**request_fields)
        assert type(caught.value) is sdk.SandboxClientError

    use(create)


def test_a_wait_hears_of_a_failure(use, daemon):
    daemon.world.fail("create", "sdk-box", "no such image")

    async def create(client):
        with pytest.raises(sdk.SandboxClientError, match="FAILED state"):
            await client.create_sandbox(image="image", sandbox_id="sdk-box")
        failed = await client.get_sandbox("sdk-box")
        assert failed.error_code == "SANDBOX_CREATE_FAILED"
        assert "no such image" in failed.error_message
        assert (await client.delete_sandbox("sdk-box")).state == SandboxState.DELETED

    use(create)


def test_a_wait_ends_when_its_time_is_up(use, daemon):
    hold = daemon.world.hold("create", "sdk-box")

    async def create(client):
        with pytest.raises((TimeoutError, sdk.SandboxClientError)):
            await client.create_sandbox(image="image", sandbox_id="sdk-box")
        assert (await client.get_sandbox("sdk-box")).state == SandboxState.PENDING

    use(create, operation_timeout_seconds=0.3)
    hold.release()


def test_without_a_daemon_the_client_says_so(use, daemon):
    daemon.stop()

    async def ping(client):
        with pytest.raises(sdk.SandboxClientError):
            await client.ping()

    use(ping)
