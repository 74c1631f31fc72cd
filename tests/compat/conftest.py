"""Fixtures for the tests here: a server with the Python worker, and the peers' environments."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
sys.path.insert(0, str(ROOT / "tests" / "support" / "py"))

from agxtest.fixtures import *  # noqa: E402, F403 (the path comes first)
from agxtest.server import Server  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "deadline(seconds): how long the test may take")


def peer(name):
    """The directory of a real peer, made where it is missing; without a network there is none."""
    done = subprocess.run(
        [ROOT / "tools" / "peer_env", name], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"cannot make the environment of {name}: {done.stderr[-500:]}")
    return Path(done.stdout.strip())


@pytest.fixture(name="peer015", scope="session")
def fixture_peer015():
    """The interpreter of agentixx 0.1.5."""
    return peer("agentixx-0.1.5") / "bin" / "python"


@pytest.fixture(name="peer_node", scope="session")
def fixture_peer_node():
    return peer("node")


def python_options(*paths):
    """How our server starts the worker of this build under the interpreter of the tests."""
    path = ":".join(map(str, (HERE / "targets", *paths)))
    package = os.environ["AGENTIX_PACKAGE"]
    return ["--python", sys.executable, "--package", package, "--path", path]


@pytest.fixture(name="server")
def fixture_server(serve):
    return serve(*python_options())


@pytest.fixture(name="shared_server", scope="module")
def fixture_shared_server(tmp_path_factory):
    """One for all tests of a module."""
    server = Server(tmp_path_factory.mktemp("shared"), *python_options())
    yield server
    server.stop()


def run_program(interpreter, name, *arguments, package=None, seconds=500, path=()):
    """Runs a program of programs/ to its end and returns what it printed."""
    places = [*([package] if package else []), HERE / "targets", *path]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("AGENTIX_", "PYTHON"))}
    done = subprocess.run(
        [interpreter, HERE / "programs" / name, *map(str, arguments)],
        env=env | {"PYTHONPATH": ":".join(map(str, places)), "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout
