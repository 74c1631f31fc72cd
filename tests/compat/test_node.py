"""socket.io-client from npm calls functions by reference, without our package or pickle."""

import json
import os
import shutil
import subprocess

import pytest
from conftest import HERE, python_options


@pytest.fixture(name="node", scope="module")
def fixture_node():
    found = shutil.which("node")
    if not found:
        pytest.skip("there is no node")
    return found


@pytest.fixture(name="javascript")
def fixture_javascript(node, peer_node):
    """javascript(program, url, transport): the objects that a program of programs/ prints."""

    def run(program, url, transport):
        done = subprocess.run(
            [node, HERE / "programs" / program, peer_node / "node_modules", url, transport],
            capture_output=True,
            text=True,
            timeout=160,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


@pytest.mark.parametrize("transport", ["websocket", "polling", "both"])
def test_a_javascript_program_calls_functions_by_reference(javascript, server, transport):
    assert javascript("calls.cjs", server.url, transport) == [
        {"event": "unary:result", "value": 5},
        {"event": "stream:end", "values": [0, 1, 2, 3]},
        {"event": "bidi:end", "values": [1, 3, 6]},
        {"event": "unary:error", "type": "LookupError", "message": "lost"},
        {"event": "unary:error", "type": "ModuleNotFoundError"},
        {"event": "unary:error", "type": "Cancelled", "message": "remote call cancelled"},
    ]


@pytest.fixture(name="c_server", params=["agentix-worker", "python"])
def fixture_c_server(request, serve):
    """C functions in the worker without Python and in the one with it."""
    functions = os.environ["TEST_FUNCTIONS"]
    if request.param == "python":
        return serve(*python_options(functions))
    return serve("--path", functions, worker=os.environ["AGENTIX_WORKER"])


@pytest.mark.parametrize("transport", ["websocket", "polling"])
def test_a_javascript_program_calls_c_functions(javascript, c_server, transport):
    first_worker = c_server.worker_pid()
    lines = javascript("c_functions.cjs", c_server.url, transport)
    cancelled = {"type": "Cancelled", "message": "remote call cancelled"}
    killed = {"type": "WorkerExited", "message": "runtime worker was killed by signal 6 (Aborted)"}
    killed["returncode"] = -6
    assert lines == [
        {"event": "unary:result", "value": 5},
        {"event": "stream:end", "values": [0, 1, 2, 3]},
        {"event": "bidi:end", "values": ["A", "BC"]},
        {"event": "unary:error", "type": "ValueError", "message": "this is 1 too many"},
        {"event": "stream:error", "values": [1], "type": "ValueError", "message": "after one"},
        {"event": "bidi:error", "values": ["A"], "type": "TypeError", "message": "text is needed"},
        {"event": "unary:error"} | cancelled,
        {"event": "stream:error", "values": "some"} | cancelled,
        {"event": "bidi:error", "values": ["A"]} | cancelled,
        {"event": "unary:error"} | killed,
        {"event": "stream:error", "values": [0, 1]} | killed,
        {"event": "bidi:error", "values": ["A"]} | killed,
        {"event": "unary:result", "value": 9},
    ]
    assert c_server.worker_pid() != first_worker
    assert c_server.health()["calls"] == 0
