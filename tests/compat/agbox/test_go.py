"""The calls of agents-sandbox's Go SDK and agbox command, with grpc-go and our own stubs."""

import json
import signal
import subprocess

import pytest
from agxtest.agbox import state_name
from agxtest.protos import agbox
from agxtest.world import FOREVER, exits


@pytest.fixture(name="go")
def fixture_go(go_programs, daemon):
    """go(program, *arguments): exit status, and the steps that it printed as (step, value)."""

    def run(program, *arguments):
        done = subprocess.run(
            [go_programs / program, daemon.socket, *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        print(done.stderr)
        return done.returncode, [(line["step"], line["value"]) for line in lines]

    return run


def ran(state, code=0, error=""):
    said = {"state": f"EXEC_STATE_{state}", "exit": code, "error": error, "cwd": "/workspace"}
    return "ran", said | {"env": {"A": "1"}, "logs": True}


def created(**labels):
    return "created", {"state": "SANDBOX_STATE_PENDING", "sequence": 1, "labels": labels or None}


def test_the_sdk_takes_a_sandbox_through_its_life(go, mode):
    status, steps = go("sdk", "life")
    assert steps == [
        ("ping", {"agentix": "agentixd", "agbox": "agboxd"}[mode]),
        created(by="go"),
        ("ready", "SANDBOX_STATE_READY"),
        ran("FINISHED"),
        ran("FAILED", 3, "docker exec failed: exit code 3"),
        ("active", 1),
        ("cancelled", "EXEC_STATE_CANCELLED"),
        ("again", "EXEC_ALREADY_TERMINAL"),
        ("stopped", "SANDBOX_STATE_STOPPED"),
        ("resumed", "SANDBOX_STATE_READY"),
        ("deleted", "SANDBOX_STATE_DELETED"),
    ]
    assert status == 0


def refusal(code, message, reason, **metadata):
    said = {"code": code, "message": message}
    if reason:
        said |= {"reason": reason, "domain": "agents-sandbox", "metadata": metadata}
    return "refused", said


def test_the_sdk_is_told_why(go):
    status, steps = go("sdk", "errors")
    box, exec_id = "goerrors", "goerrors-x"
    expired = f"sandbox {box} event sequence 1000 is outside retained history"
    assert steps[2:] == [
        refusal(
            "NotFound", "sandbox nobody was not found", "SANDBOX_NOT_FOUND", sandbox_id="nobody"
        ),
        refusal(
            "AlreadyExists",
            f"sandbox_id {box} already exists",
            "SANDBOX_ID_ALREADY_EXISTS",
            sandbox_id=box,
        ),
        refusal(
            "FailedPrecondition",
            f"sandbox {box} is not stopped",
            "SANDBOX_INVALID_STATE",
            sandbox_id=box,
        ),
        refusal("NotFound", "exec nothing was not found", "EXEC_NOT_FOUND", exec_id="nothing"),
        refusal(
            "AlreadyExists",
            f"exec_id {exec_id} already exists",
            "EXEC_ID_ALREADY_EXISTS",
            exec_id=exec_id,
        ),
        refusal(
            "FailedPrecondition",
            f"exec {exec_id} is already terminal",
            "EXEC_ALREADY_TERMINAL",
            exec_id=exec_id,
        ),
        refusal(
            "OutOfRange",
            expired,
            "SANDBOX_EVENT_SEQUENCE_EXPIRED",
            sandbox_id=box,
            from_sequence="1000",
        ),
        refusal("InvalidArgument", "label_selector must not be empty", None),
        ("deleted", "SANDBOX_STATE_DELETED"),
        refusal(
            "FailedPrecondition", f"sandbox {box} is not ready", "SANDBOX_NOT_READY", sandbox_id=box
        ),
    ]
    assert status == 0


def test_the_sdk_deletes_by_labels_and_waits_for_all(go):
    status, steps = go("sdk", "labels")
    ids = ["golabel0", "golabel1", "golabel2"]
    assert steps[-2:] == [("deleting", {"ids": ids, "count": 3}), ("left", 0)]
    assert status == 0


def test_the_command_goes_by_the_states_of_events(go):
    for command, state in (
        ("create", "READY"),
        ("stop", "STOPPED"),
        ("resume", "READY"),
        ("delete", "DELETED"),
    ):
        assert go("agbox", command, "gobox") == (0, [("state", f"SANDBOX_STATE_{state}")])
    status, steps = go("agbox", "stop", "gobox")
    assert status == 1
    assert steps[0][1]["reason"] == "SANDBOX_INVALID_STATE"


def test_the_command_hears_of_a_failure(go, daemon):
    daemon.world.fail("create", "gobox", "no such image")
    assert go("agbox", "create", "gobox")[0] == 1


@pytest.mark.parametrize("code", [0, 1, 42, 127])
def test_the_command_ends_as_what_it_ran(go, client, code):
    client.ready("gobox")
    status, _ = go("agbox", "run", "gobox", *exits(code))
    assert status == code


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_cancels_what_it_runs(go_programs, daemon, client, number):
    client.ready("gobox")
    command = [go_programs / "agbox", daemon.socket, "run", "gobox", *FOREVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        exec_id = json.loads(program.stdout.readline())["value"]
        program.send_signal(number)
        assert program.wait(60) == 128 + number
    assert client.ended(exec_id).state == agbox().EXEC_STATE_CANCELLED
    assert state_name(client.get("gobox").state) == "READY"


def test_a_command_that_another_cancels_is_125(go_programs, daemon, client):
    client.ready("gobox")
    command = [go_programs / "agbox", daemon.socket, "run", "gobox", *FOREVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        client.box.CancelExec(exec_id=json.loads(program.stdout.readline())["value"])
        assert program.wait(60) == 125
