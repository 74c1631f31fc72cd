"""socket.io-client from npm calls functions by reference: no package of ours, no pickle."""

import json
import shutil
import subprocess

import pytest
from conftest import HERE


@pytest.fixture(name="node", scope="module")
def fixture_node():
    found = shutil.which("node")
    if not found:
        pytest.skip("there is no node")
    return found


@pytest.mark.parametrize("transport", ["websocket", "polling", "both"])
def test_a_javascript_program_calls_functions_by_reference(node, peer_node, server, transport):
    done = subprocess.run(
        [node, HERE / "programs" / "calls.cjs", peer_node / "node_modules", server.url, transport],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"event": "unary:result", "value": 5},
        {"event": "stream:end", "values": [0, 1, 2, 3]},
        {"event": "bidi:end", "values": [1, 3, 6]},
        {"event": "unary:error", "type": "LookupError", "message": "lost"},
        {"event": "unary:error", "type": "ModuleNotFoundError"},
        {"event": "unary:error", "type": "Cancelled", "message": "remote call cancelled"},
    ]
