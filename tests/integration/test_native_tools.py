"""Builtin tools in native sandboxes: what programs of the host have in its home."""

import socket

import pytest
from agxtest.server import wait_for
from native_fixtures import *  # noqa: F403

pytestmark = pytest.mark.deadline(120)


@pytest.fixture(name="agent")
def fixture_agent(tmp_path, monkeypatch):
    """The socket of an SSH agent, which the daemon knows from its environment."""
    path = tmp_path / "agent"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
        yield path


@pytest.fixture(name="stage")
def fixture_stage(agent, tmp_path, deadline):
    made = Stage(tmp_path / "d")  # noqa: F405
    yield made
    made.close()


def put(stage, path, text):
    file = stage.place.home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def shell(stage, box, script):
    return stage.runs(box, "sh", "-c", script) == 0


def test_files_of_the_host_s_tools_are_in_the_sandbox_s_home(stage):
    put(stage, ".npm/host", "host\n")
    put(stage, ".config/gh/hosts.yml", "token\n")
    box = stage.ready(builtin_tools=["npm", "git"])
    assert shell(stage, box, "[ $(cat ~/.npm/host) = host ] && echo box >~/.npm/box")
    written = stage.place.home / ".npm/box"
    assert written.read_text() == "box\n"
    assert written.stat().st_uid == stage.place.home.stat().st_uid
    assert shell(stage, box, "[ $(cat ~/.config/gh/hosts.yml) = token ]")
    assert not shell(stage, box, "echo mine >~/.config/gh/hosts.yml"), "it is only to be read"
    assert shell(stage, box, "test -S /ssh-agent")
    other = stage.ready()
    assert shell(stage, other, "! [ -e ~/.npm ] && ! [ -e ~/.config/gh ] && ! [ -e /ssh-agent ]")


def test_tool_that_needs_what_the_host_has_not_says_so(stage):
    stage.create("box-needs", builtin_tools=["claude"])
    wait_for(lambda: stage.state("box-needs") == "FAILED", "it has failed")
    message = stage.client.get("box-needs").error_message
    assert "'claude'" in message and str(stage.place.home / ".claude") in message
