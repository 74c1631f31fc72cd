"""Fixtures for tests of agentix-server: `from agxtest.fixtures import *` in a conftest.py."""

import signal

import pytest

from agxtest.server import Server, fake_worker

__all__ = ["fixture_deadline", "fixture_fake", "fixture_serve", "fixture_serve_fake"]

DEADLINE_S = 60  # of a test without its own @pytest.mark.deadline(seconds)
BUSY = 3  # factor for a busy machine, or for sanitizers


@pytest.fixture(autouse=True, name="deadline")
def fixture_deadline(request):
    """Makes a test that hangs fail."""
    mark = request.node.get_closest_marker("deadline")
    seconds = BUSY * (mark.args[0] if mark else DEADLINE_S)

    def over(_signo, _frame):
        raise TimeoutError(f"the test took more than {seconds} s")

    old = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old)


@pytest.fixture(name="serve")
def fixture_serve(tmp_path, deadline):
    """serve(*options, env=, worker=) starts a server; its log is printed if the test fails."""
    servers = []

    def serve(*options, **settings):
        servers.append(Server(tmp_path / f"server{len(servers)}", *options, **settings))
        return servers[-1]

    yield serve
    for server in servers:
        try:
            if server.process.returncode is None:
                server.stop()
        finally:
            print(f"---- log of agentix-server {server.pid}\n{server.log()[-8000:]}")


@pytest.fixture(name="fake")
def fixture_fake(tmp_path):
    """fake(mode) returns the program of a scripted worker."""
    return lambda mode="ready": fake_worker(tmp_path, mode)


@pytest.fixture(name="serve_fake")
def fixture_serve_fake(serve, fake):
    """A server with the scripted worker."""

    def serve_fake(*options, mode="ready", **settings):
        return serve(*options, worker=fake(mode), **settings)

    return serve_fake
