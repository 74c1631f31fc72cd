"""A program of the documented API has the same output with every client and every server."""

import os
import subprocess
import sys
import urllib.request

import pytest
from agxtest.server import free_port, wait_for
from agxtest.wire import Client
from conftest import HERE, run_program


def is_healthy(url):
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


@pytest.fixture(name="server015")
def fixture_server015(peer015, tmp_path):
    """The server of agentixx 0.1.5; its worker has the working directory on its path."""
    port = free_port()
    with (tmp_path / "peer.log").open("wb") as log:
        process = subprocess.Popen(
            [peer015.parent / "agentix-server", "--host", "127.0.0.1", "--port", str(port)],
            cwd=HERE / "targets",
            stdout=log,
            stderr=log,
        )
    url = f"http://127.0.0.1:{port}"
    wait_for(lambda: is_healthy(url), "the peer's server is up", 120)
    yield url
    process.terminate()
    process.wait(60)


@pytest.fixture(name="expected")
def fixture_expected(peer015, server015):
    return run_program(peer015, "documented.py", server015)


def test_the_peers_client_prints_the_same_with_our_server(peer015, server, expected):
    assert len(expected.splitlines()) > 15
    assert run_program(peer015, "documented.py", server.url) == expected


def test_our_client_prints_the_same_with_either_server(server, server015, expected):
    package = os.environ["AGENTIX_PACKAGE"]
    for url in (server.url, f"unix://{server.socket_path}", server015):
        assert run_program(sys.executable, "documented.py", url, package=package) == expected


def test_a_channel_of_a_type_without_a_schema_is_an_error(server):
    """Ledger 19."""
    with Client(server) as c:
        call = c.start("compat_targets::opaque_inbox", kind="bidi")
        c.emit("bidi:in", call_id=call, item=1)
        _, name, error = c.rest(call)
        assert (name, error["type"]) == ("bidi:error", "PydanticSchemaGenerationError")


def test_an_interpreter_without_the_package_is_told_of(serve):
    """Ledger 4."""
    with Client(serve("--python", sys.executable)) as c:
        kind, error = c.call("compat_targets::add", 1)
        assert (kind, error["type"]) == ("error", "WorkerUnavailable")
        assert "agentix" in error["message"], error["message"]
