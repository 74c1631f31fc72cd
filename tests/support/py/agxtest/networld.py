"""Network namespaces that stand for a host, its sandboxes and the world outside.

A process of ours holds each namespace, and that process dies with the test. The namespaces have no
names, so none can be left behind.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agxtest import linux
from agxtest.server import wait_for

AGENT = Path(__file__).with_name("netagent.py")
# The results of connect() for an address that a filter blocks.
REFUSED = ("refused", "unreachable")


def needs_namespaces():
    """Skips the test if no namespace can be made."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    for program in ("ip", "nft"):
        if not shutil.which(program):
            pytest.skip(f"no {program}")


class Namespace:
    """A network namespace, and an agent in it that listens and connects."""

    def __init__(self, name):
        self.name = name
        self.holder = subprocess.Popen(["sleep", "infinity"], preexec_fn=self._unshare)
        self.agents = []
        self.run("ip", "link", "set", "lo", "up")

    @staticmethod
    def _unshare():
        linux.die_with_parent()
        linux.unshare(linux.CLONE_NEWNET)

    def _enter(self):
        linux.die_with_parent()
        with open(f"/proc/{self.holder.pid}/ns/net", "rb") as ns:
            linux.setns(ns.fileno(), linux.CLONE_NEWNET)

    def popen(self, *command, **options):
        return subprocess.Popen(command, preexec_fn=self._enter, **options)

    def run(self, *command, text=None):
        done = subprocess.run(
            command, preexec_fn=self._enter, input=text, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise AssertionError(f"{self.name}: {' '.join(command)}: {done.stderr}")
        return done.stdout

    def sysctl(self, **values):
        script = "".join(f"echo {v} > /proc/sys/{k.replace('__', '/')};" for k, v in values.items())
        self.run("sh", "-c", script)

    def serve(self, *ports):
        """Starts an agent that listens on these ports."""
        self._agent(*map(str, ports))

    def _agent(self, *ports):
        agent = self.popen(
            sys.executable,
            str(AGENT),
            *ports,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.agents.append(agent)
        assert agent.stdout.readline() == "ready\n"
        return agent

    def connect(self, address, port, kind="tcp", source=""):
        """The result of a connection: "open", "refused", "unreachable", "silent", or an error."""
        if not self.agents:
            self._agent()
        agent = self.agents[-1]
        print(kind, address, port, source, file=agent.stdin, flush=True)
        return agent.stdout.readline().strip()

    def close(self):
        for each in (*self.agents, self.holder):
            each.kill()
            each.wait()
            for pipe in (each.stdin, each.stdout):
                if pipe:
                    pipe.close()


def link(a, name_a, b, name_b):
    """Makes a veth pair between two namespaces."""
    a.run("ip", "link", "add", name_a, "type", "veth", "peer", "name", name_b)
    a.run("ip", "link", "set", name_b, "netns", str(b.holder.pid))
    a.run("ip", "link", "set", name_a, "up")
    b.run("ip", "link", "set", name_b, "up")


def add_addresses(where, device, *addresses):
    for each in addresses:
        extra = ["nodad"] if ":" in each else []
        where.run("ip", "address", "add", each, "dev", device, *extra)


def answer(space, address, port, kind="tcp"):
    """The result of a connection that must not be silent. A new link may lose its first packet, so
    silence is no result here."""

    def heard():
        found = space.connect(address, port, kind)
        return None if found == "silent" else found

    return wait_for(heard, f"{address} port {port} {kind} is not silent")


def each_refused(space, *targets, kind="tcp"):
    answers = {(address, port): answer(space, address, port, kind) for address, port in targets}
    assert {k: v for k, v in answers.items() if v not in REFUSED} == {}


def each_open(space, *targets):
    """Waits until a connection works: the first may need a neighbour lookup of up to a second."""
    for address, port in targets:
        wait_for(lambda: space.connect(address, port) == "open", f"{address} port {port}")  # noqa: B023
