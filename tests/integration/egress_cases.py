"""Sandboxes with an egress list, tested from inside: addresses and names, on every backend.

A module that imports everything from here gets the tests; its fixture `stage` is the backend's.

sandbox -- its bridge -- host of the box -- up0 | eth0 -- another network namespace: `outside`
"""

import contextlib
import socket
import subprocess
from pathlib import Path

import pytest
from agxtest.protos import agbox
from agxtest.server import wait_for

PORT = 8765
HOST, GATEWAY = "203.0.113.1", "203.0.113.10"
# The name needs a public address; other addresses are ignored.
NAMED, OTHER = "8.8.77.1", "8.8.77.2"
NAME = "files.example.test"
SERVE = f"echo an answer >index.html; exec httpd -f -p {PORT}"


def sh(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


@pytest.fixture(name="outside", scope="module", autouse=True)
def fixture_outside(tmp_path_factory):
    """The network around the host of the box. The box has its own /etc."""
    sh("ip", "netns", "add", "outside")
    sh("ip", "link", "add", "up0", "type", "veth", "peer", "name", "eth0", "netns", "outside")
    inside = ("ip", "-n", "outside")
    for address in (f"{GATEWAY}/24", f"{NAMED}/32", f"{OTHER}/32"):
        sh(*inside, "addr", "add", address, "dev", "eth0")
    sh("ip", "addr", "add", f"{HOST}/24", "dev", "up0")
    sh(*inside, "link", "set", "lo", "up")
    sh(*inside, "link", "set", "eth0", "up")
    sh("ip", "link", "set", "up0", "up")
    sh("ip", "route", "add", "default", "via", GATEWAY)
    with Path("/etc/hosts").open("a") as hosts:
        print(f"{NAMED} {NAME}\n192.168.77.9 lan.example.test", file=hosts)
    server = subprocess.Popen(
        ["ip", "netns", "exec", "outside", "busybox", "sh", "-c", SERVE],
        cwd=tmp_path_factory.mktemp("outside"),
    )
    wait_for(lambda: answers(GATEWAY), "the server outside answers")
    yield
    server.kill()
    server.wait()
    sh("ip", "link", "del", "up0")
    sh("ip", "netns", "del", "outside")


def answers(address):
    """Whether the address answers to the host."""
    with contextlib.suppress(OSError), socket.create_connection((address, PORT), timeout=5):
        return True
    return False


def reaches(stage, box, address):
    command = ("timeout", "3", "wget", "-qO-", f"http://{address}:{PORT}/")
    return stage.client.run(box, *command).exit_code == 0


def closed(stage, *entries, **spec):
    return stage.ready(network=agbox().NETWORK_MODE_EGRESS, egress=list(entries), **spec)


def test_name_on_the_list_is_reached_by_its_name_and_nothing_else_is(stage):
    box = closed(stage, f"{NAME}:{PORT}")
    wait_for(lambda: reaches(stage, box, NAME), "the name is reached")
    wait_for(lambda: reaches(stage, box, NAMED), "and by its address")
    for address in (OTHER, GATEWAY, HOST):
        assert not reaches(stage, box, address), address


def test_list_holds_through_a_kill_a_stop_and_a_resume(stage):
    box = closed(stage, f"{NAME}:{PORT}")
    stage.restart()
    wait_for(lambda: reaches(stage, box, NAME), "the name is reached after a restart")
    assert not reaches(stage, box, OTHER)
    newest = stage.client.get(box).last_event_sequence
    stage.client.box.StopSandbox(sandbox_id=box)
    stopped = stage.client.until(box, agbox().SANDBOX_STOPPED, after=newest)[-1]
    stage.client.box.ResumeSandbox(sandbox_id=box)
    stage.client.until(box, agbox().SANDBOX_READY, after=stopped.sequence)
    wait_for(lambda: reaches(stage, box, NAME), "the name is reached after a resume")
    assert not reaches(stage, box, OTHER)


def test_name_of_the_lan_opens_nothing(stage):
    box = closed(stage, "lan.example.test")
    assert stage.runs(box, "grep", "-q", "localhost", "/etc/hosts") == 0
    assert stage.runs(box, "grep", "-q", "lan.example.test", "/etc/hosts") == 1


def test_empty_list_opens_nothing_and_companions_are_reached(stage):
    companion = {"name": "web", "image": stage.image, "command": ["sh", "-c", SERVE]}
    box = closed(stage, companion_containers=[companion])
    wait_for(lambda: reaches(stage, box, "web"), "the companion answers")
    for address in (NAMED, GATEWAY, HOST):
        assert not reaches(stage, box, address), address
