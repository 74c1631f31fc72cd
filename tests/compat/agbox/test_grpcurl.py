"""grpcurl learns our services only from reflection."""

import json
import subprocess

import pytest


@pytest.fixture(name="grpcurl")
def fixture_grpcurl(peer_go, daemon):
    """grpcurl(*words, options=, data=): what it prints."""

    def call(*words, options=(), data=None, status=0):
        command = [peer_go / "bin" / "grpcurl", "-plaintext", *options]
        if data is not None:
            command += ["-d", json.dumps(data)]
        done = subprocess.run(
            [*command, f"unix://{daemon.socket}", *words],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == status, done.stderr
        return done.stdout if status == 0 else done.stdout + done.stderr

    return call


def test_services_are_listed_and_described(grpcurl):
    services = grpcurl("list").split()
    assert {"agbox.v1.SandboxService", "agentix.v1.ControlService"} <= set(services)
    assert {"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"} <= set(services)
    methods = grpcurl("list", "agbox.v1.SandboxService").split()
    assert len(methods) == 13
    assert "agbox.v1.SandboxService.SubscribeSandboxEvents" in methods
    described = grpcurl("describe", "agbox.v1.ListActiveExecsRequest")
    assert "optional string sandbox_id = 1;" in described
    described = grpcurl("describe", "agbox.v1.SandboxEvent")
    assert "oneof details" in described


def test_methods_are_called(grpcurl, mode):
    service = "agbox.v1.SandboxService"
    pong = json.loads(grpcurl(f"{service}/Ping"))
    assert pong["daemon"] == {"agentix": "agentixd", "agbox": "agboxd"}[mode]
    request = {"sandbox_id": "curled", "create_spec": {"image": "image", "idle_ttl": "0s"}}
    made = json.loads(grpcurl(f"{service}/CreateSandbox", data=request))["sandbox"]
    assert (made["sandboxId"], made["lastEventSequence"]) == ("curled", "1")
    waited = grpcurl("agentix.v1.ControlService/WaitSandbox", data={"sandbox_id": "curled"})
    assert json.loads(waited)["sandbox"]["state"] == "SANDBOX_STATE_READY"
    got = json.loads(grpcurl(f"{service}/GetSandbox", data={"sandbox_id": "curled"}))
    assert got["sandbox"]["state"] == "SANDBOX_STATE_READY"


def test_a_stream_is_read_until_its_time_is_up(grpcurl):
    service = "agbox.v1.SandboxService"
    request = {"sandbox_id": "curled", "create_spec": {"image": "image"}}
    grpcurl(f"{service}/CreateSandbox", data=request)
    grpcurl("agentix.v1.ControlService/WaitSandbox", data={"sandbox_id": "curled"})
    told = grpcurl(
        f"{service}/SubscribeSandboxEvents",
        options=["-max-time", "15"],  # in which it also connects and asks for descriptions
        data={"sandbox_id": "curled"},
        status=64 + 4,
    )
    assert "DeadlineExceeded" in told
    assert told.index("SANDBOX_ACCEPTED") < told.index("SANDBOX_READY")


def test_a_refusal_is_displayed_with_its_details(grpcurl):
    method, options = "agbox.v1.SandboxService/GetSandbox", ["-format-error"]
    told = grpcurl(method, options=options, data={"sandbox_id": "nobody"}, status=64 + 5)
    found = json.loads(told)
    assert found["message"] == "sandbox nobody was not found"
    assert found["details"][0]["reason"] == "SANDBOX_NOT_FOUND"
