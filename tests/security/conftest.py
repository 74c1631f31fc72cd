"""Fixtures for the tests here."""

import os
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "support" / "py"), str(TESTS / "integration")]

from agxtest.fixtures import *  # noqa: F403, E402 (the path comes first)
from escapes import World  # noqa: E402
from inside import STAGES, mount_of, neighbour, writable_mount_of  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "deadline(seconds): how long the test may take")


@pytest.fixture(name="world", scope="session")
def fixture_world():
    world = World()
    yield world
    world.close()


@pytest.fixture(name="stage", scope="session")
def fixture_stage(tmp_path_factory):
    """A daemon with the backend that AGX_BACKEND names, and the image with the probe in it."""
    stage = STAGES[os.environ["AGX_BACKEND"]](tmp_path_factory.mktemp("daemon"))
    yield stage
    stage.close()


@pytest.fixture(name="box", scope="session")
def fixture_box(stage, world):
    """A sandbox with a read-only directory of the host."""
    return stage.ready(mounts=[mount_of(world)])


@pytest.fixture(name="writing_box", scope="session")
def fixture_writing_box(stage, world):
    """A sandbox that also has a writable directory of the host."""
    return stage.ready(mounts=[mount_of(world), writable_mount_of(world)])


@pytest.fixture(name="allowing_box", scope="session")
def fixture_allowing_box(stage, world):
    """A sandbox whose writable mount has `suid: allow`."""
    return stage.ready(mounts=[writable_mount_of(world) | {"suid": "MOUNT_SUID_ALLOW"}])


@pytest.fixture(name="neighbour", scope="session")
def fixture_neighbour(stage, world):
    """Another sandbox; attempts know its address."""
    world.names |= neighbour(stage)
