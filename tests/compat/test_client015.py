"""The published client of Agentix 0.1.5, unchanged, against agentix-server."""

import json
import os
import signal
import subprocess

import pytest
from conftest import HERE, python_options, run_program

EXPECTED = {
    "health": ["ok", True],
    "unary": [3, 11, 6, [[1, "x", None], {"k": [1.5, True]}], None],
    "unary_types": [["Point", 6, 3], ["Pair", 2, "1"], "(2, 1)"],
    "many_at_once": [2 * i for i in range(200)],
    "stream": [list(range(1000)), [["Point", 0], ["Point", 1]]],
    "stream_error": [[0, 1, 2], "ValueError", "after the items", True],
    "stream_left_early": [[0, 1, 2], "ended"],
    "bidi": [200, 100, 20000],
    "bidi_in_step": [[sum(range(i + 1)) for i in range(20)], []],
    "bidi_bad_item": [[1], "ValidationError", ["strict_inbox ended"]],
    "errors": [
        ["compat_targets::fail: LookupError: lost", "compat_targets::fail", False, True],
        ["KeyError", "'k'"],
        "ValidationError",
        "TypeError",
        "TypeError",
    ],
    "cancel": "cancelled",
    "user_cancelled_error": ["CancelledError", "by myself"],
    "call_context": [2, 4],
    "same_call_id_twice": [2, 1.0],
    "callables": [3, 8, 6, 15, 5, 5, "Counter", 8, 2, "A"],
    "lambda_refused": [True, 2],
    "output": [5, 0, "", 2],
    "worker_dies": ["WorkerExited", True, 2, "WorkerExited", True, 2],
    "unpackable_results": [
        ["datetime", "2020-01-02 03:04:05+00:00"],
        ["UUID", "00000000-0000-0000-0000-000000000007"],
        ["PosixPath", "/tmp/x"],
        ["Decimal", "1.10"],
        ["Color", "Color.RED"],
        ["set", "{3}"],
        ["int", str(1 << 80)],
        "SerializationError",
    ],
    "integer_keys": [[[1, "a"], [2, "b"]], ["a", "b"]],
    "arrays": [
        ["int32", [[0, 1, 2], [3, 4, 5]]],
        6.0,
        6.0,
        6.0,
        6.0,
        "SerializationError",
        "SerializationError",
        2,
    ],
    "large_arguments": [999_000, 1_000_000, 1_100_000, 4 << 20, 20_000_000],
    "large_results": [4_194_200, *["MessageTooLarge"] * 3, 2],
    "sync_functions_in_threads": [2, True, True],
    "variadic": [6, "ValidationError"],
    "sync_generator": [0, 1, 2, 3],
    "generator_without_await": [True, 2, 4],
    "many_streams": [1225] * 50,
}
POLLING = [
    "unary",
    "stream",
    "stream_error",
    "bidi",
    "errors",
    "cancel",
    "large_arguments",
    "arrays",
]


def run_cases(peer015, server, *names):
    """What each case printed."""
    lines = run_program(peer015, "cases.py", server.url, *names).splitlines()
    return {one["case"]: one["result"] for one in map(json.loads, lines)}


@pytest.fixture(name="seen", scope="module")
def fixture_seen(peer015, shared_server):
    return run_cases(peer015, shared_server, *EXPECTED)


@pytest.fixture(name="seen_polling", scope="module")
def fixture_seen_polling(peer015, shared_server):
    return run_cases(peer015, shared_server, "--polling", *POLLING)


@pytest.mark.deadline(300)
@pytest.mark.parametrize("name", EXPECTED)
def test_the_client_sees_of(name, seen):
    assert seen[name] == EXPECTED[name]


@pytest.mark.deadline(300)
@pytest.mark.parametrize("name", POLLING)
def test_the_client_without_websocket_sees_of(name, seen_polling):
    assert seen_polling[name] == EXPECTED[name]


def test_a_client_is_told_when_the_server_stops(peer015, serve):
    """Ledger 23."""
    server = serve("--grace", "100ms", *python_options())
    process = subprocess.Popen(
        [peer015, HERE / "programs" / "cases.py", server.url, "in_flight"],
        env=os.environ | {"PYTHONPATH": str(HERE / "targets")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "running\n"
    server.process.send_signal(signal.SIGTERM)
    answer = json.loads(process.stdout.readline())
    assert answer["result"][0] == "ServerShutdown"
    process.stdout.close()
    assert process.wait(60) == 0
    server.stop()


def test_modules_of_the_working_directory_shadow_nothing(peer015, serve, tmp_path):
    """Ledger 21."""
    for name in ("compat_targets.py", "json.py", "agentix.py", "pydantic.py"):
        (tmp_path / name).write_text("raise ImportError('the wrong one')\n")
    before = os.getcwd()
    os.chdir(tmp_path)
    try:
        server = serve(*python_options())
    finally:
        os.chdir(before)
    assert run_cases(peer015, server, "unary")["unary"] == EXPECTED["unary"]
