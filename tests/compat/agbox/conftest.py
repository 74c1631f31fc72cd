"""Fixtures for tests of the daemon's gRPC services: a daemon in each mode, a client, a world."""

import subprocess
import threading
from pathlib import Path

import pytest
from agxtest.agbox import CALL_S, Client
from agxtest.daemon import MODES, Daemon

ROOT = Path(__file__).parents[3]


@pytest.fixture(name="threads_end", scope="session", autouse=True)
def fixture_threads_end():
    """grpc has a thread for the calls of a channel, which ends in its own time behind close(). The
    garbage of its calls needs locks that such a thread may hold for ever once the interpreter ends.
    """
    yield
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and "_poll" not in thread.name:  # asyncio's stays
            thread.join(CALL_S)


@pytest.fixture(name="mode", params=MODES)
def fixture_mode(request):
    """Every test that asks for a daemon runs without and with --compat agbox."""
    return request.param


@pytest.fixture(name="start_daemon")
def fixture_start_daemon(tmp_path, deadline):
    """start_daemon(mode, config=, options=): a running daemon; its log is printed at the end."""
    daemons = []

    def start(mode="agentix", **settings):
        daemons.append(Daemon(tmp_path / f"d{len(daemons)}", mode, **settings))
        return daemons[-1]

    yield start
    for daemon in daemons:
        daemon.close()


@pytest.fixture(name="daemon")
def fixture_daemon(start_daemon, mode):
    """One for this test."""
    return start_daemon(mode)


@pytest.fixture(name="connect")
def fixture_connect(deadline):
    """connect(daemon): a client of its own channel."""
    clients = []

    def connect(daemon):
        clients.append(Client(daemon.channel()))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


@pytest.fixture(name="client")
def fixture_client(daemon, connect):
    return connect(daemon)


@pytest.fixture(name="world")
def fixture_world(daemon):
    return daemon.world


# One daemon for all tests of a module, where each keeps to ids of its own.


@pytest.fixture(name="shared_daemon", scope="module", params=MODES)
def fixture_shared_daemon(request, tmp_path_factory):
    daemon = Daemon(tmp_path_factory.mktemp("d"), request.param)
    yield daemon
    daemon.close()


@pytest.fixture(name="shared", scope="module")
def fixture_shared(shared_daemon):
    """A client of the shared daemon."""
    client = Client(shared_daemon.channel())
    yield client
    client.close()


# Go: the environment, and programs that it builds.


def made_by(tool, *arguments):
    """The directory that a tool prints; where it cannot make it there is no network."""
    done = subprocess.run(
        [ROOT / "tools" / tool, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"{tool}: {done.stderr[-500:]}")
    return Path(done.stdout.strip())


@pytest.fixture(name="peer_go", scope="session")
def fixture_peer_go():
    return made_by("peer_env", "go")


@pytest.fixture(name="go_programs", scope="session")
def fixture_go_programs(peer_go):
    return made_by("peer_go_programs")
