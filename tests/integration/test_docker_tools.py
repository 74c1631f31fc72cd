"""Builtin tools in sandboxes on a Docker Engine: logins are private copies, caches of the host are
not used, and a sandbox cannot change the host's files."""

import json
import os

import pytest
import tool_cases as cases
from agxtest import images
from agxtest.protos import agbox
from agxtest.server import wait_for
from docker_fixtures import fixture_engine, fixture_start_stage  # noqa: F401

pytestmark = pytest.mark.deadline(300)

APP = "agx-app:1"


@pytest.fixture(name="agent")
def fixture_agent(tmp_path, monkeypatch):
    """The socket of an SSH agent, which the daemon knows from its environment."""
    with cases.listening(tmp_path / "agent") as path:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
        yield path


@pytest.fixture(name="start")
def fixture_start(agent, start_stage):
    def start(mode="agentix"):
        stage = start_stage(mode)
        cases.fill(stage.daemon.place.home)
        return stage

    return start


def shell(stage, box, script):
    return stage.runs(box, "sh", "-c", script)


def failed(stage, box, **spec):
    stage.create(box, **spec)
    state = agbox().SANDBOX_STATE_FAILED
    wait_for(lambda: stage.state(box) == state, "it has failed", 60)
    return stage.client.get(box).error_message


def test_sandbox_has_copies_of_logins_and_harms_nothing_of_the_host(start):
    stage = start()
    home = stage.daemon.place.home
    before = cases.look(home)
    box = stage.ready(builtin_tools=cases.TOOLS)
    warnings = stage.client.get(box).warnings
    assert [each.rpartition(": ")[2] for each in warnings] == ["~/.cache/uv", "~/.npm"]
    assert shell(stage, box, cases.reads(cases.COPIES)) == 0
    assert shell(stage, box, "stat -c %u-%a ~/.claude ~/.claude/.credentials.json >/tmp/is") == 0
    assert shell(stage, box, "[ \"$(echo $(cat /tmp/is))\" = '0-700 0-600' ]") == 0
    assert shell(stage, box, cases.harm()) == 0
    assert cases.look(home) == before
    box = stage.ready(builtin_tools=["claude:settings", "claude:agents", "git:ssh-agent"])
    named = {".claude.json", ".claude/settings.json", ".claude/agents/one.md"}
    assert shell(stage, box, "test -S /ssh-agent") == 0
    assert shell(stage, box, cases.reads(named).replace("! [ -e /ssh-agent ] && ", "")) == 0
    assert shell(stage, box, cases.harm()) == 0
    assert cases.look(home) == before


def test_in_compatibility_mode_the_same_sandbox_does_harm(start):
    stage = start("agbox")
    home = stage.daemon.place.home
    box = stage.ready(builtin_tools=cases.TOOLS)
    assert any("~/.claude.json" in each for each in stage.client.get(box).warnings)
    assert shell(stage, box, "test -S /ssh-agent") == 0
    assert shell(stage, box, cases.harm()) == 0
    harmed = {name for name in cases.FILES if (home / name).read_text() == "harm\n"}
    assert harmed == cases.LIVE


def test_copies_are_those_of_whom_commands_run_as(start, engine):
    stage = start()
    engine.load(APP, images.busybox().finish(), ["USER app", f"CMD {json.dumps(images.IDLE)}"])
    box = stage.ready(image=APP, builtin_tools=["claude", "git"])
    assert shell(stage, box, "[ $(id -u) = 1500 ] && [ ~ = /home/app ]") == 0
    assert shell(stage, box, "grep -q 'of the host' ~/.claude/.credentials.json") == 0
    assert shell(stage, box, "echo mine >~/.claude/.credentials.json && echo new >~/.claude/x") == 0


def test_users_of_an_image_may_be_behind_links(start, engine):
    stage = start()
    tree = images.busybox(images.Tree())
    tree.directory("etc", "real", "home", "home/app", "dev", "proc", "sys")
    tree.directory("tmp", mode=0o1777)
    tree.file("real/users", "app:x:1500:1500::/home/app:/bin/sh\n")
    tree.link("real/passwd", "users")
    tree.link("etc/passwd", "../real/passwd")
    engine.load(APP, tree.finish(), ["USER app", f"CMD {json.dumps(images.IDLE)}"])
    box = stage.ready(image=APP, builtin_tools=["claude"])
    assert shell(stage, box, "[ ~ = /home/app ] && test -w ~/.claude/.credentials.json") == 0


def test_what_is_no_file_is_refused_by_name_and_leaves_nothing(start, engine, tmp_path):
    stage = start()
    login = stage.daemon.place.home / ".codex/auth.json"
    login.unlink()
    os.mkfifo(login)
    assert f"'{login}' is not a regular file" in failed(stage, "fifo", builtin_tools=["codex"])
    login.unlink()
    message = failed(stage, "none", builtin_tools=["codex"])
    assert "'codex' needs" in message and str(login) in message
    (tmp_path / "data").mkdir()
    mount = {"source": str(tmp_path / "data"), "target": "/root/.claude", "writable": True}
    message = failed(stage, "mounted", builtin_tools=["claude"], mounts=[mount])
    assert "conflicting mount target '/root/.claude'" in message
    assert list((tmp_path / "data").iterdir()) == []
    assert engine.containers() == []
