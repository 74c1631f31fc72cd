"""Companions, ports, mounts, copies, builtin tools, YAML, by the SDK on a real Docker Engine."""

import datetime
import socket
import urllib.request

import pytest
from agents_sandbox import (
    CompanionContainerSpec,
    CopySpec,
    HealthcheckConfig,
    MountSpec,
    PortMapping,
    SandboxEventType,
    SandboxState,
)
from agxtest.server import wait_for
from flows import output, primary, until

SERVE = "mkdir -p /tmp/w; echo $WORD >/tmp/w/index.html; exec httpd -f -p 80 -h /tmp/w"
READY = SandboxEventType.COMPANION_CONTAINER_READY


def second(n):
    return datetime.timedelta(seconds=n)


def get(url):
    """What is served there; None: nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return answer.read().decode()
    except OSError:
        return None


def web(word, **changes):
    """A companion that serves a word once it is healthy."""
    fields = {
        "name": "web",
        "image": "agx-busybox:1",
        "command": ("sh", "-c", SERVE),
        "envs": {"WORD": word},
        "healthcheck": HealthcheckConfig(
            test=("CMD-SHELL", "wget -qO- 127.0.0.1 >/dev/null"),
            interval=second(1),
            timeout=second(2),
            retries=60,
        ),
    }
    return CompanionContainerSpec(**(fields | changes))


async def failed(client, sandbox_id, **spec):
    """The message of a create that must fail behind its acceptance."""
    await client.create_sandbox(sandbox_id=sandbox_id, wait=False, **spec)
    types = (SandboxEventType.SANDBOX_FAILED, SandboxEventType.SANDBOX_READY)
    await until(client, sandbox_id, *types)
    handle = await client.get_sandbox(sandbox_id)
    assert handle.state == SandboxState.FAILED
    await client.delete_sandbox(sandbox_id)
    return handle.error_message


def test_companion_is_reached_by_its_name(use, engine, image, box_id):
    async def create(client):
        made = await client.create_sandbox(
            image=image, sandbox_id=box_id, companion_containers=(web("served"),)
        )
        assert [c.name for c in made.companion_containers] == ["web"]
        await until(client, box_id, READY)
        seen = engine.inspect(f"agbox-cc-{box_id}-web")
        assert seen["Config"]["Healthcheck"]["Interval"] == 10**9
        wait_for(
            lambda: (
                engine.inspect(f"agbox-cc-{box_id}-web")["State"]["Health"]["Status"] == "healthy"
            ),
            "the companion is healthy",
        )
        assert await output(client, box_id, "wget", "-qO-", "http://web/") == "served\n"
        await client.stop_sandbox(box_id)
        assert not engine.inspect(f"agbox-cc-{box_id}-web")["State"]["Running"]
        await client.resume_sandbox(box_id)
        wait_for(
            lambda: engine.inspect(f"agbox-cc-{box_id}-web")["State"]["Running"],
            "the companion runs again",
        )
        await client.delete_sandbox(box_id)
        assert engine.inspect(f"agbox-cc-{box_id}-web") is None

    use(create)


def test_hooks_run_on_the_primary_once_the_companion_is_healthy(use, image, box_id):
    hook = 'wget -qO- http://web/ >/tmp/hook; echo "$WORD" >>/tmp/hook; touch /tmp/hook.done'

    async def create(client):
        await client.create_sandbox(
            image=image,
            sandbox_id=box_id,
            companion_containers=(web("hooked", post_start_on_primary=(hook,)),),
        )
        script = "for i in $(seq 500); do [ -e /tmp/hook.done ] && break; sleep 0.1; done; "
        assert await output(client, box_id, "sh", "-c", script + "cat /tmp/hook") == (
            "hooked\nhooked\n"
        )

    use(create)


def test_companion_that_cannot_start_does_not_fail_the_sandbox(use, image, box_id):
    async def create(client):
        # Less than the engine takes.
        broken = CompanionContainerSpec(name="broken", image="agx-busybox:1", memory_limit="1m")
        made = await client.create_sandbox(
            image=image, sandbox_id=box_id, companion_containers=(broken,)
        )
        assert made.state == SandboxState.READY
        events = await until(client, box_id, SandboxEventType.COMPANION_CONTAINER_FAILED)
        assert events[-1].companion_container.name == "broken"
        assert events[-1].companion_container.error_code == "COMPANION_CONTAINER_FAILED"

    use(create)


def test_declared_port_answers_on_the_loopback(use, image, box_id, port):
    async def create(client):
        await client.create_sandbox(
            image=image,
            sandbox_id=box_id,
            command=["sh", "-c", SERVE.replace("80", "8080")],
            envs={"WORD": "declared"},
            ports=(PortMapping(container_port=8080, host_port=port),),
        )
        wait_for(lambda: get(f"http://127.0.0.1:{port}/") == "declared\n", "the port answers")
        await client.delete_sandbox(box_id)
        assert get(f"http://127.0.0.1:{port}/") is None

    use(create)


def test_port_that_is_taken_fails_the_sandbox_by_name(use, image, box_id):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        mapping = PortMapping(container_port=80, host_port=port)

        async def create(client):
            return await failed(client, box_id, image=image, ports=(mapping,))

        assert str(port) in use(create)


def test_mounts_are_live(use, engine, image, box_id, tmp_path):
    shared, single = tmp_path / "shared", tmp_path / "single"
    shared.mkdir()
    single.write_text("of the host\n")

    async def create(client):
        await client.create_sandbox(
            image=image,
            sandbox_id=box_id,
            mounts=(
                MountSpec(str(shared), "/data", writable=True),
                MountSpec(str(single), "/etc/single"),
            ),
        )
        assert await output(client, box_id, "cat", "/etc/single") == "of the host\n"
        refused = await client.run(box_id, ["sh", "-c", "echo x >/etc/single"])
        assert refused.exit_code != 0
        await output(client, box_id, "sh", "-c", "echo inside >/data/file")
        assert (shared / "file").read_text() == "inside\n"
        (shared / "later").write_text("outside\n")
        assert await output(client, box_id, "cat", "/data/later") == "outside\n"

    use(create)


def test_socket_of_the_engine_is_no_mount(use, image, box_id):
    async def create(client):
        mounts = (MountSpec("/run/docker.sock", "/run/docker.sock"),)
        try:
            return await failed(client, box_id, image=image, mounts=mounts)
        except Exception as error:  # refused before it was accepted does as well
            return str(error)

    assert "/run/docker.sock" in use(create)


def test_copies_are_the_sandbox_s_own(use, image, box_id, tmp_path):
    source = tmp_path / "project"
    (source / "sub" / "empty").mkdir(parents=True)
    (source / "a.txt").write_text("a\n")
    (source / "a.log").write_text("left out\n")
    (source / "sub" / "tool").write_text("#!/bin/sh\necho runs\n")
    (source / "sub" / "tool").chmod(0o755)
    (source / "link").symlink_to("a.txt")

    async def create(client):
        await client.create_sandbox(
            image=image,
            sandbox_id=box_id,
            copies=(
                CopySpec(str(source), "/workspace", exclude_patterns=("*.log",)),
                CopySpec(str(source / "a.txt"), "/made/renamed"),
            ),
        )
        listed = await output(client, box_id, "sh", "-c", "find . | sort")
        assert listed.split() == [".", "./a.txt", "./link", "./sub", "./sub/empty", "./sub/tool"]
        assert await output(client, box_id, "cat", "link", "/made/renamed") == "a\na\n"
        assert await output(client, box_id, "sub/tool") == "runs\n"
        await output(client, box_id, "sh", "-c", "echo changed >a.txt")
        assert (source / "a.txt").read_text() == "a\n"

    use(create)


def test_symbolic_link_out_of_a_copy_fails_by_name(use, image, box_id, tmp_path):
    source = tmp_path / "project"
    source.mkdir()
    (source / "out").symlink_to("/etc/passwd")

    async def create(client):
        return await failed(client, box_id, image=image, copies=(CopySpec(str(source), "/w"),))

    message = use(create)
    assert "external symlink" in message
    assert "out" in message


def test_builtin_tools_bring_their_files(use, daemon, image, box_id):
    (daemon.place.home / ".claude").mkdir()
    (daemon.place.home / ".claude" / "settings").write_text("of claude\n")
    (daemon.place.home / ".claude.json").write_text("{}\n")
    (daemon.place.home / ".npm").mkdir()

    async def create(client):
        await client.create_sandbox(
            image=image, sandbox_id=box_id, builtin_tools=("claude", "npm", "apt")
        )
        assert await output(client, box_id, "cat", "/home/agbox/.claude/settings") == "of claude\n"
        assert await output(client, box_id, "cat", "/home/agbox/.claude.json") == "{}\n"
        await output(client, box_id, "touch", "/home/agbox/.npm/from-inside")

    use(create)
    assert (daemon.place.home / ".npm" / "from-inside").exists()


def test_builtin_tool_that_lacks_what_it_needs_fails_by_name(use, image, box_id):
    async def create(client):
        return await failed(client, box_id, image=image, builtin_tools=("codex",))

    assert ".codex" in use(create)


@pytest.mark.deadline(90)
def test_yaml_says_the_same(use, engine, box_id, tmp_path, port):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "file").write_text("copied\n")
    text = f"""
        image: agx-agbox:1
        command: [sh, -c, "{SERVE.replace("80", "8080")}"]
        envs: {{WORD: of yaml}}
        labels: {{from: yaml}}
        cpu_limit: 1
        ports: [{{container_port: 8080, host_port: {port}}}]
        mounts: [{{source: {tmp_path}, target: /mnt/host, writable: false}}]
        copies: [{{source: {tmp_path}/in, target: /workspace}}]
        companion_containers:
          web:
            image: agx-busybox:1
            command: [sh, -c, "{SERVE}"]
            envs: {{WORD: of a companion}}
    """

    async def create(client):
        made = await client.create_sandbox(config_yaml=text, sandbox_id=box_id)
        assert (made.state, made.labels) == (SandboxState.READY, {"from": "yaml"})
        wait_for(lambda: get(f"http://127.0.0.1:{port}/") == "of yaml\n", "the port answers")
        assert await output(client, box_id, "cat", "file", "/mnt/host/in/file") == "copied\n" * 2
        await until(client, box_id, READY)
        script = "for i in $(seq 500); do wget -qO- http://web/ && break; sleep 0.1; done"
        assert await output(client, box_id, "sh", "-c", script) == "of a companion\n"
        assert primary(engine, box_id)["HostConfig"]["NanoCpus"] == 10**9

    use(create)
