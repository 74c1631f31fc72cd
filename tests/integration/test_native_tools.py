"""Builtin tools in native sandboxes: a sandbox reads the files of the host's programs, and cannot
change them."""

import os

import pytest
import tool_cases as cases
from agxtest import images
from agxtest.server import wait_for
from native_fixtures import *  # noqa: F403

pytestmark = pytest.mark.deadline(300)


@pytest.fixture(name="agent")
def fixture_agent(tmp_path, monkeypatch):
    """The socket of an SSH agent, which the daemon knows from its environment."""
    with cases.listening(tmp_path / "agent") as path:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
        yield path


@pytest.fixture(name="start_stage")
def fixture_start_stage(agent, tmp_path, deadline):
    stages = []

    def start(mode="agentix"):
        stages.append(Stage(tmp_path / f"d{len(stages)}", mode=mode))  # noqa: F405
        cases.fill(stages[-1].place.home)
        return stages[-1]

    yield start
    for stage in stages:
        stage.close()


@pytest.fixture(name="stage")
def fixture_stage(start_stage):
    return start_stage()


def shell(stage, box, script):
    return stage.runs(box, "sh", "-c", script)


def failed(stage, box, **spec):
    """The message of a create that is accepted and must then fail."""
    stage.create(box, **spec)
    wait_for(lambda: stage.state(box) == "FAILED", "it has failed", 60)
    return stage.client.get(box).error_message


def test_sandbox_reads_logins_and_caches_and_harms_nothing_of_the_host(stage):
    home = stage.place.home
    before = cases.look(home)
    box = stage.ready(builtin_tools=cases.TOOLS)
    assert not stage.client.get(box).warnings
    assert shell(stage, box, cases.reads(cases.COPIES | cases.CACHES)) == 0
    assert shell(stage, box, "stat -c %u-%a ~/.claude ~/.claude/.credentials.json >/tmp/is") == 0
    assert shell(stage, box, "[ \"$(echo $(cat /tmp/is))\" = '0-700 0-600' ]") == 0
    assert shell(stage, box, cases.harm()) == 0
    assert shell(stage, box, "[ $(cat ~/.npm/_cacache/one) = harm ]") == 0
    assert cases.look(home) == before


def test_in_compatibility_mode_the_same_sandbox_does_harm(start_stage):
    stage = start_stage("agbox")
    home = stage.place.home
    box = stage.ready(builtin_tools=cases.TOOLS)
    assert any("~/.claude.json" in each for each in stage.client.get(box).warnings)
    assert any("the ssh-agent" in each for each in stage.client.get(box).warnings)
    assert shell(stage, box, "test -S /ssh-agent") == 0
    assert shell(stage, box, cases.harm()) == 0
    harmed = {name for name in cases.FILES if (home / name).read_text() == "harm\n"}
    assert harmed == cases.LIVE


def test_what_a_sandbox_writes_stays_until_it_is_deleted(stage):
    box = stage.ready(builtin_tools=["npm", "claude"])
    assert shell(stage, box, "echo mine >~/.npm/mine; echo mine >~/.claude/.credentials.json") == 0
    stage.client.box.StopSandbox(sandbox_id=box)
    wait_for(lambda: stage.state(box) == "STOPPED", "it is stopped", 60)
    (stage.place.home / ".claude/.credentials.json").unlink()  # a resume does not need it
    stage.restart()
    stage.client.box.ResumeSandbox(sandbox_id=box)
    wait_for(lambda: stage.state(box) == "READY", "it is ready again", 60)
    assert (
        shell(stage, box, "[ $(cat ~/.npm/mine ~/.claude/.credentials.json | uniq) = mine ]") == 0
    )
    assert shell(stage, box, "grep -q package ~/.npm/_cacache/one") == 0
    other = stage.ready(builtin_tools=["npm"])
    assert shell(stage, other, "! [ -e ~/.npm/mine ]") == 0


def test_parts_are_given_only_where_they_are_named(stage):
    home = stage.place.home
    before = cases.look(home)
    box = stage.ready(
        builtin_tools=["claude:settings", "claude:agents", "codex:agents", "git:settings"]
    )
    named = {".claude.json", ".claude/settings.json", ".claude/agents/one.md", ".agents/one.md"}
    named |= {".gitconfig", ".config/gh/config.yml"}
    assert shell(stage, box, cases.reads(named)) == 0
    assert shell(stage, box, cases.harm()) == 0
    assert (
        shell(stage, box, "grep -q harm ~/.claude.json && ! grep -q harm ~/.claude/agents/*") == 0
    )
    assert cases.look(home) == before
    box = stage.ready(builtin_tools=["git:ssh-agent"])
    assert shell(stage, box, "test -S /ssh-agent && [ $SSH_AUTH_SOCK = /ssh-agent ]") == 0
    [warning] = stage.client.get(box).warnings
    assert "'git:ssh-agent'" in warning and "the ssh-agent" in warning


def test_copies_are_those_of_whom_commands_run_as(stage):
    stage.send(images.pack("app", images.busybox(), {"User": "app", "Cmd": ["sleep", "1000000"]}))
    box = stage.ready(image="agx-app:1", builtin_tools=["claude", "git"])
    assert shell(stage, box, "[ $(id -u) = 1500 ] && [ ~ = /home/app ]") == 0
    assert shell(stage, box, "grep -q 'of the host' ~/.claude/.credentials.json") == 0
    assert shell(stage, box, "echo mine >~/.claude/.credentials.json && echo new >~/.claude/x") == 0
    box = stage.ready(image="agx-app:1", builtin_tools=["codex"], envs={"HOME": "/tmp/h/me"})
    assert shell(stage, box, "cat /tmp/h/me/.codex/auth.json >/dev/null") == 0
    stage.delete_all()
    stage.images.RemoveImage(image="agx-app:1")


def test_what_is_no_file_is_refused_by_name_and_leaves_nothing(stage):
    login = stage.place.home / ".codex/auth.json"
    login.unlink()
    os.mkfifo(login)
    assert f"'{login}' is not a regular file" in failed(stage, "fifo", builtin_tools=["codex"])
    login.unlink()
    login.symlink_to("/etc/shadow")
    assert f"'{login}' is a symbolic link" in failed(stage, "link", builtin_tools=["codex"])
    login.unlink()
    with login.open("wb") as file:
        file.truncate(1 << 30)
    assert f"'{login}' has 1073741824 bytes" in failed(stage, "huge", builtin_tools=["codex"])
    login.unlink()
    message = failed(stage, "none", builtin_tools=["codex"])
    assert "'codex' needs" in message and str(login) in message
    assert not [name for name in os.listdir(stage.boxes) if name in ("fifo", "link", "huge")]


def test_copy_is_never_written_into_a_mount_of_the_host(stage, tmp_path):
    (tmp_path / "data").mkdir()
    mount = {"source": str(tmp_path / "data"), "target": "/root/.claude", "writable": True}
    message = failed(stage, "box-mount", builtin_tools=["claude"], mounts=[mount])
    assert "conflicting mount target '/root/.claude'" in message
    assert list((tmp_path / "data").iterdir()) == []
    assert stage.state(stage.ready("box-other", mounts=[mount])) == "READY"


def test_unknown_part_is_refused_with_the_known_ones(stage):
    refusal = stage.client.refused(
        "CreateSandbox", create_spec={"image": stage.image, "builtin_tools": ["git:all"]}
    )
    assert "its parts are: settings, ssh-agent" in str(refusal)
