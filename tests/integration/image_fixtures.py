"""Fixtures: a daemon with its image store, and the command line that uses it."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from agxtest.agbox import Stub
from agxtest.daemon import Daemon
from agxtest.registry import Registry
from agxtest.server import wait_for

TIMEOUT_S = 180  # only ends a hang: some archives have thousands of files


class ImageStage:
    """The daemon, `agentix image` with it, and the files on its disk."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.env = daemon.env | {"AGENTIX_AUTOSTART": "0"}
        self.images = daemon.place.data / "images"

    def command(self, *words):
        return [os.environ["AGENTIX"], "image", *map(str, words)]

    def run(self, *words, data=None, **options):
        done = subprocess.run(
            self.command(*words),
            input=data,
            stdin=None if data is not None else subprocess.DEVNULL,
            capture_output=True,
            env=self.env,
            timeout=TIMEOUT_S,
            check=False,
            **options,
        )
        done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
        return done

    def start(self, *words, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        return subprocess.Popen(self.command(*words), env=self.env, **options)

    def ok(self, *words, **options):
        """Runs a command, which must succeed, and returns its output."""
        done = self.run(*words, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def fails(self, *words, **options):
        """Runs a command, which must fail, and returns the last line of its errors."""
        done = self.run(*words, **options)
        assert (done.returncode, done.stdout) == (1, ""), done.stdout
        return done.stderr.splitlines()[-1]

    def list(self):
        return json.loads(self.ok("list", "--json"))["images"]

    def names(self):
        return sorted(name for image in self.list() for name in image["names"])

    def inspect(self, image):
        return json.loads(self.ok("inspect", image, "--json"))

    def stub(self):
        return Stub(self.daemon.channel(), "agentix.v1.ImageService")

    # -- the disk

    def layers(self):
        """Maps each diff id to the directory with the layer's files."""
        found = (self.images / "layers").glob("sha256-*")
        return {each.name.replace("-", ":"): each / "tree" for each in found}

    def in_the_making(self):
        return list((self.images / "tmp").iterdir())

    def is_empty(self):
        return not self.layers() and not self.in_the_making() and not self.list()

    def settles(self):
        """Waits until tmp/ is empty: removed files move there first and are deleted later."""
        wait_for(lambda: not self.in_the_making(), "nothing is in the making", TIMEOUT_S)

    def spooled(self):
        """The bytes in open files without a name, which imports and pulls use."""
        total = 0
        for link in Path(f"/proc/{self.daemon.process.pid}/fd").iterdir():
            try:
                if str(self.images) in os.readlink(link) and "(deleted)" in os.readlink(link):
                    total += link.stat().st_size
            except OSError:
                continue
        return total


@pytest.fixture(name="start_stage")
def fixture_start_stage(tmp_path):
    """start_stage(config) starts a separate daemon."""
    daemons = []

    def start(config=None):
        daemons.append(Daemon(tmp_path / f"d{len(daemons)}", config=config))
        return ImageStage(daemons[-1])

    yield start
    for daemon in daemons:
        daemon.close()


@pytest.fixture(name="stage")
def fixture_stage(start_stage):
    return start_stage()


@pytest.fixture(name="registry")
def fixture_registry():
    registry = Registry()
    yield registry
    registry.close()
