"""Fixtures for the tests of agentix: a scripted daemon, and the real one."""

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from agxtest.cli import TIMEOUT_S, Cli
from agxtest.fake_daemon import FakeDaemon
from agxtest.server import wait_for


class Installed:
    """agentix and agentixd in one directory, as they are installed, with the fake backend."""

    def __init__(self, cli):
        self.cli = cli
        self.bin = cli.top / "bin"
        self.bin.mkdir()
        for name in ("AGENTIX", "AGENTIXD", "AGENTIX_FAKEWORLD"):
            shutil.copy(os.environ[name], self.bin)
        self.world = cli.top / "world"
        cli.program = str(self.bin / "agentix")
        config = cli.top / "conf" / "agentix" / "config.yaml"
        config.parent.mkdir(parents=True)
        config.write_text(f"backend: fake:{self.world}\n")
        self.config = config
        self.log = cli.top / "data" / "agentix" / "agentixd.log"
        self.env = cli.env(AGENTIX_AUTOSTART=None)

    def run(self, *words, **changes):
        return self.cli.run(*words, env=self.env | changes)

    def status(self):
        """The exit status and output of `agentix daemon status`."""
        done = self.run("daemon", "status")
        return done.returncode, done.stdout

    def daemons(self):
        """The pids of the running processes of our agentixd."""
        found = []
        for path in Path("/proc").glob("[0-9]*/exe"):
            try:
                if os.readlink(path) == str(self.bin / "agentixd"):
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return found

    def close(self):
        for pid in self.daemons():
            with contextlib.suppress(ProcessLookupError):  # it was about to end
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not self.daemons(), "the daemons are gone")
        for world in (self.world, self.cli.top / "other"):
            if world.exists():
                command = [self.bin / "agentix-fakeworld", "--stop", world]
                subprocess.run(command, check=False, timeout=TIMEOUT_S)


@pytest.fixture(name="cli")
def fixture_cli():
    cli = Cli()
    yield cli
    cli.close()


@pytest.fixture(name="fake")
def fixture_fake(cli):
    """A fake daemon at the socket where agentix looks."""
    fake = FakeDaemon(cli.socket)
    fake.start()
    yield fake
    fake.stop()


@pytest.fixture(name="installed")
def fixture_installed(cli):
    installed = Installed(cli)
    yield installed
    installed.close()
