"""Fixtures for the tests of agentix against a daemon that does what they say."""

import pytest
from agxtest.cli import Cli
from agxtest.fake_daemon import FakeDaemon


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
