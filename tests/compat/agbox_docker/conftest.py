"""Fixtures for flows of agents-sandbox on a Docker Engine: `agentixd --compat agbox`, its SDK."""

import asyncio
import itertools

import pytest
from agents_sandbox import AgentsSandboxClient
from agxtest import images
from agxtest.daemon import DockerDaemon
from agxtest.server import free_port

numbers = itertools.count(1)


@pytest.fixture(name="box_id")
def fixture_box_id():
    """An id of its own for the sandbox of each test."""
    return f"flow-{next(numbers)}"


@pytest.fixture(name="daemon", scope="module")
def fixture_daemon(tmp_path_factory):
    """One for all tests of a module. At its end nothing is left in the engine."""
    daemon = DockerDaemon(tmp_path_factory.mktemp("d"), "agbox")
    yield daemon
    try:
        leave_nothing(daemon)
    finally:
        daemon.close()


@pytest.fixture(name="engine", scope="module")
def fixture_engine(daemon):
    """Docker, as somebody else sees it."""
    return daemon.world


@pytest.fixture(name="image", scope="module")
def fixture_image(engine):
    """Follows the contract of runtime images."""
    return images.require(engine, "agbox")


@pytest.fixture(name="use")
def fixture_use(daemon, monkeypatch, deadline):
    """use(function): runs `async def function(client)` with the SDK, which looks where it does."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(daemon.runtime))

    def run(function):
        async def whole():
            # Its default of 5 s is for the whole of a create; this machine has other work too.
            async with AgentsSandboxClient(timeout_seconds=60) as client:
                return await function(client)

        return asyncio.run(whole())

    return run


@pytest.fixture(name="port")
def fixture_port():
    """One that nobody listens on, and that nobody is given by chance."""
    return free_port()


def leave_nothing(daemon):
    async def delete(client):
        for each in await client.list_sandboxes():
            await client.delete_sandbox(each.sandbox_id)

    async def whole():
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", str(daemon.runtime))
            async with AgentsSandboxClient(timeout_seconds=60) as client:
                await delete(client)

    asyncio.run(whole())
    assert daemon.world.containers() == []
    assert daemon.world.networks() == []
