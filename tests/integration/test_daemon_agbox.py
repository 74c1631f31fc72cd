"""agentixd as a replacement of agboxd: sockets, locks, the log, the name, exit codes."""

import fcntl
import json
import os
import subprocess

import pytest
from agxtest.control import call, check_health
from agxtest.daemon import PROGRAM, TIMEOUT_S, Place, can_connect, mode_of
from agxtest.server import wait_for
from grpc_health.v1 import health_pb2

SERVING = health_pb2.HealthCheckResponse.SERVING


class AgboxPlace(Place):
    """A place with the directories of agents-sandbox beside ours."""

    def __init__(self):
        super().__init__()
        self.agbox = self.run_home / "agbox"
        self.agbox_socket = self.agbox / "agboxd.sock"
        self.agbox_lock = self.agbox / "agboxd.lock"
        self.program = self.top / "agboxd"
        self.program.symlink_to(PROGRAM)

    def run_agboxd(self, *arguments, env=None):
        return subprocess.run(
            [str(self.program), *arguments],
            env=env or self.env(),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    def lines(self):
        """The lines of the log, each a JSON object."""
        return [json.loads(line) for line in self.said().splitlines()]


@pytest.fixture(name="place")
def fixture_place(deadline):
    place = AgboxPlace()
    yield place
    place.close()


def test_both_sockets_are_served_and_both_locks_held(place):
    process = place.start("--compat", "agbox")
    wait_for(lambda: can_connect(place.agbox_socket), "the second socket is served")
    assert check_health(place.socket) == check_health(place.agbox_socket) == SERVING
    assert call(place.agbox_socket, "agbox.v1.SandboxService/Ping").daemon == "agboxd"
    assert place.agbox_lock.read_text() == place.lock.read_text() == f"{process.pid}\n"
    assert mode_of(place.agbox_lock) == 0o644 and mode_of(place.agbox) == 0o755
    assert mode_of(place.agbox_socket) == 0o600
    process.terminate()
    assert process.wait(TIMEOUT_S) == 0
    assert not place.agbox_socket.exists() and not place.socket.exists()
    assert place.agbox_lock.exists()


def test_its_log_is_json_with_daemon_and_version(place):
    config = place.config_home / "agents-sandbox" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[runtime]\n")
    process = place.start("--compat", "agbox")
    process.terminate()
    assert process.wait(TIMEOUT_S) == 0
    lines = place.lines()
    assert len(lines) >= 3
    assert all(line["daemon"] == "agboxd" and line["version"] for line in lines)
    assert all(line["time"] and line["level"] for line in lines)
    assert any(line.get("path") == str(config) and line["level"] == "warn" for line in lines)
    assert any(line.get("msg") == "shutting down" for line in lines)


def test_a_running_agboxd_keeps_it_from_starting(place):
    place.agbox.mkdir(parents=True)
    with place.agbox_lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711\n")
        lock.flush()
        done = place.call("--compat", "agbox", "--foreground")
    assert done.returncode == 1
    (line,) = [json.loads(text) for text in done.stderr.splitlines()]
    assert line["msg"] == "failed to acquire lock" and line["level"] == "error"
    assert str(place.agbox_lock) in line["error"] and "already held" in line["error"]
    assert "4711" in line["error"]


def test_started_as_agboxd_it_is_agboxd(place):
    place.configure(f"backend: fake:{place.world}\n")
    with place.stderr.open("ab") as stderr:
        process = subprocess.Popen([str(place.program)], env=place.env(), stderr=stderr)
    place.processes.append(process)
    wait_for(lambda: can_connect(place.agbox_socket), "it serves in the foreground")
    assert check_health(place.agbox_socket) == SERVING
    done = place.run_agboxd()
    assert done.returncode == 1 and "failed to acquire lock" in done.stderr
    process.terminate()
    assert process.wait(TIMEOUT_S) == 0


def test_agboxd_takes_docker_unless_told_otherwise_and_wants_its_rights_first(place):
    prefix = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"]
    done = subprocess.run(
        [*prefix, str(place.program)],
        env=place.env(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 1 and not place.run_home.exists()
    assert done.stderr.startswith("agboxd: ") and "CAP_NET_ADMIN" in done.stderr
    assert "setcap" in done.stderr and "{" not in done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["--socket", "x"], ["x"], ["--version"]])
def test_agboxd_takes_no_argument_at_all(place, arguments):
    done = place.run_agboxd(*arguments)
    assert done.returncode == 2
    assert "does not accept CLI path overrides" in done.stderr
    assert not place.run_home.exists()


def test_without_a_runtime_directory_agboxd_ends_with_2(place):
    done = place.run_agboxd(env=place.env(XDG_RUNTIME_DIR=None))
    assert done.returncode == 2 and "XDG_RUNTIME_DIR" in done.stderr
    if os.geteuid() == 0:
        done = place.call(
            "--compat", "agbox", env=place.env(XDG_RUNTIME_DIR=None, AGENTIX_SOCKET="/x/y")
        )
        assert done.returncode == 2


def test_a_wrong_configuration_ends_agboxd_with_2(place):
    place.configure("runtime: {idle_ttl: 10m}\n")
    done = place.run_agboxd()
    assert done.returncode == 2 and "'runtime'" in done.stderr
