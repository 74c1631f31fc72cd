"""Create, exec, logs, stop, resume, delete, restart, by the SDK on a real Docker Engine."""

import pytest
from agents_sandbox import ExecState, SandboxEventType, SandboxState
from agxtest.server import wait_for
from flows import LABEL, network, primary, said, until


def test_sandbox_goes_through_its_life(use, engine, image, box_id):
    async def life(client):
        made = await client.create_sandbox(image=image, sandbox_id=box_id, labels={"team": "x"})
        assert (made.state, made.image) == (SandboxState.READY, image)
        seen = primary(engine, box_id)
        assert seen["State"]["Running"]
        labels = seen["Config"]["Labels"]
        assert labels[f"{LABEL}.sandbox-id"] == box_id
        assert labels[f"{LABEL}.component"] == "primary"
        assert labels[f"{LABEL}.user.team"] == "x"
        assert network(engine, box_id)

        stopped = await client.stop_sandbox(box_id)
        assert stopped.state == SandboxState.STOPPED
        state = primary(engine, box_id)["State"]
        assert not state["Running"]
        assert state["ExitCode"] != 137, "the default main process ends on TERM"

        assert (await client.resume_sandbox(box_id)).state == SandboxState.READY
        assert (await client.run(box_id, ["true"])).state == ExecState.FINISHED
        assert (await client.delete_sandbox(box_id)).state == SandboxState.DELETED
        assert primary(engine, box_id) is None
        assert not network(engine, box_id)

    use(life)


def test_commands_run_as_agbox_in_the_workspace(use, image, box_id):
    async def commands(client):
        await client.create_sandbox(image=image, sandbox_id=box_id, envs={"A": "1", "B": "2"})
        run = await client.run(
            box_id,
            ["sh", "-c", 'echo "$HOME $PWD $A$B"; echo bad >&2'],
            env_overrides={"B": "3"},
        )
        assert (run.state, run.exit_code, run.error) == (ExecState.FINISHED, 0, None)
        assert said(run) == ("/home/agbox /workspace 13\n", "bad\n")
        elsewhere = await client.run(box_id, ["pwd"], cwd="/tmp")
        assert said(elsewhere)[0] == "/tmp\n"
        owner = await client.run(box_id, ["stat", "-c", "%u:%g", "/workspace"])
        who = await client.run(box_id, ["sh", "-c", "echo $(id -u):$(id -g)"])
        assert said(owner) == said(who)

    use(commands)


def test_command_right_after_ready_finds_its_user(use, image, box_id):
    """The image's entrypoint may still be making it."""

    async def commands(client):
        made = await client.create_sandbox(
            image=image, sandbox_id=box_id, envs={"ENTRYPOINT_DELAY": "1"}
        )
        assert made.state == SandboxState.READY
        run = await client.run(box_id, ["sh", "-c", "echo $HOME"])
        assert (run.state, run.error) == (ExecState.FINISHED, None)
        assert said(run)[0] == "/home/agbox\n"

    use(commands)


@pytest.mark.parametrize(
    ("command", "code"),
    [(["sh", "-c", "exit 3"], 3), (["no-such-command"], 127), (["/etc/passwd"], 126)],
)
def test_other_exit_codes_are_failures(use, image, box_id, command, code):
    async def commands(client):
        await client.create_sandbox(image=image, sandbox_id=box_id)
        run = await client.run(box_id, command)
        assert (run.state, run.exit_code) == (ExecState.FAILED, code)
        assert run.error == f"docker exec failed: exit code {code}"
        await client.delete_sandbox(box_id)

    use(commands)


def test_cancelled_command_is_gone(use, engine, image, box_id):
    def runs(needle):
        top = engine.call("GET", f"/containers/agbox-primary-{box_id}/top")
        return any(needle in " ".join(process) for process in top["Processes"])

    async def commands(client):
        await client.create_sandbox(image=image, sandbox_id=box_id)
        run = await client.create_exec(box_id, ["sleep", "54321"])
        wait_for(lambda: runs("54321"), "the command runs")
        cancelled = await client.cancel_exec(run.exec_id)
        assert (cancelled.state, cancelled.exit_code) == (ExecState.CANCELLED, 0)
        assert not runs("54321")

    use(commands)


def test_command_of_its_own_is_the_main_process(use, engine, image, box_id):
    async def life(client):
        await client.create_sandbox(
            image=image, sandbox_id=box_id, command=["sh", "-c", "echo main >/tmp/main; sleep 1000"]
        )
        # READY says that it was started, not how far it is.
        script = "while ! [ -s /tmp/main ]; do sleep 0.1; done; cat /tmp/main"
        run = await client.run(box_id, ["sh", "-c", script])
        assert said(run)[0] == "main\n"
        assert primary(engine, box_id)["HostConfig"]["RestartPolicy"]["Name"] == "unless-stopped"

    use(life)


def test_limits_reach_the_engine(use, engine, image, box_id):
    async def create(client):
        await client.create_sandbox(
            image=image, sandbox_id=box_id, cpu_limit="0.5", memory_limit="64m"
        )

    use(create)
    host = primary(engine, box_id)["HostConfig"]
    assert (host["NanoCpus"], host["Memory"]) == (500_000_000, 64 << 20)
    assert host["PidsLimit"] > 0
    assert not host["Privileged"]
    # Images of agents-sandbox use sudo.
    assert not any("no-new-privileges" in option for option in host["SecurityOpt"] or [])


def test_image_that_is_not_there_fails_the_sandbox(use, engine, box_id):
    async def create(client):
        made = await client.create_sandbox(image="agx-none:1", sandbox_id=box_id, wait=False)
        await until(client, box_id, SandboxEventType.SANDBOX_FAILED)
        failed = await client.get_sandbox(made.sandbox_id)
        assert failed.state == SandboxState.FAILED
        assert "agx-none:1" in failed.error_message
        assert primary(engine, box_id) is None
        assert (await client.delete_sandbox(box_id)).state == SandboxState.DELETED

    use(create)


def test_what_runs_goes_on_through_a_restart(use, daemon, image, box_id):
    """Execs too, which the peer gives up."""

    async def begin(client):
        await client.create_sandbox(image=image, sandbox_id=box_id)
        return await client.create_exec(box_id, ["sh", "-c", "echo one; sleep 2; echo two; exit 9"])

    async def go_on(client):
        assert (await client.get_sandbox(box_id)).state == SandboxState.READY
        await until(client, box_id, SandboxEventType.EXEC_FAILED)
        ended = await client.get_exec(run.exec_id)
        assert (ended.state, ended.exit_code) == (ExecState.FAILED, 9)
        assert said(run)[0] == "one\ntwo\n"
        assert (await client.run(box_id, ["true"])).exit_code == 0

    run = use(begin)
    daemon.restart()
    use(go_on)


def test_stopped_sandbox_stays_resumable_through_a_restart(use, daemon, image, box_id):
    async def begin(client):
        await client.create_sandbox(image=image, sandbox_id=box_id)
        assert (await client.run(box_id, ["touch", "/home/agbox/kept"])).exit_code == 0
        await client.stop_sandbox(box_id)

    async def go_on(client):
        assert (await client.get_sandbox(box_id)).state == SandboxState.STOPPED
        assert (await client.resume_sandbox(box_id)).state == SandboxState.READY
        assert (await client.run(box_id, ["ls", "/home/agbox/kept"])).exit_code == 0

    use(begin)
    daemon.restart()
    use(go_on)


def test_container_that_somebody_removed_fails_the_sandbox(use, engine, image, box_id):
    async def lose(client):
        await client.create_sandbox(image=image, sandbox_id=box_id)
        engine.run("rm", "-f", f"agbox-primary-{box_id}")
        events = await until(client, box_id, SandboxEventType.SANDBOX_FAILED)
        assert events[-1].sandbox_phase.error_code == "CONTAINER_NOT_RUNNING"
        await client.delete_sandbox(box_id)
        assert not network(engine, box_id)

    use(lose)


def test_main_process_that_dies_is_started_again(use, engine, image, box_id):
    async def kill(client):
        await client.create_sandbox(image=image, sandbox_id=box_id)
        before = primary(engine, box_id)["State"]["Pid"]
        engine.run("kill", f"agbox-primary-{box_id}")

        def again():
            state = primary(engine, box_id)["State"]
            return state["Running"] and state["Pid"] not in (0, before)

        wait_for(again, "it runs again")
        assert (await client.get_sandbox(box_id)).state == SandboxState.READY
        ended = await client.run(box_id, ["true"])
        while ended.exit_code != 0:  # the daemon has not yet come to its new init
            ended = await client.run(box_id, ["true"])

    use(kill)


def test_sandboxes_are_deleted_by_label(use, engine, image, box_id):
    async def life(client):
        for n in range(3):
            await client.create_sandbox(
                image=image, sandbox_id=f"{box_id}-{n}", labels={"group": box_id}
            )
        found = await client.list_sandboxes(label_selector={"group": box_id})
        assert len(found) == 3
        gone = await client.delete_sandboxes({"group": box_id})
        assert gone.deleted_count == 3
        assert engine.containers(f"{LABEL}.user.group={box_id}") == []

    use(life)
