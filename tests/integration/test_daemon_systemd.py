"""agentixd under a service manager: socket activation, notification, and our unit files."""

import configparser
import contextlib
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from agxtest.control import check_health
from agxtest.daemon import PROGRAM, TIMEOUT_S, Place
from agxtest.server import wait_for
from grpc_health.v1 import health_pb2

SERVING = health_pb2.HealthCheckResponse.SERVING
UNITS = Path(os.environ.get("PACKAGING", "packaging")) / "systemd"
# Becomes the program, with descriptor 3 and its own pid, as a service manager does.
LAUNCHER = (
    "import os, sys\n"
    "os.dup2(int(sys.argv[1]), 3)\n"
    "os.environ['LISTEN_PID'] = str(os.getpid())\n"
    "os.environ['LISTEN_FDS'] = '1'\n"
    "os.execv(sys.argv[2], sys.argv[2:])\n"
)


@pytest.fixture(name="place")
def fixture_place(deadline):
    place = Place()
    yield place
    place.close()


def launch(place, sock, *options, env=None):
    """agentixd with that socket as its descriptor 3."""
    launcher = [sys.executable, "-c", LAUNCHER, str(sock.fileno())]
    with place.stderr.open("ab") as stderr:
        process = subprocess.Popen(
            [*launcher, *place.command("--foreground", *options)],
            pass_fds=[sock.fileno()],
            stderr=stderr,
            env=env or place.env(),
        )
    place.processes.append(process)
    return process


def test_a_socket_that_is_handed_over_is_served_and_stays(place):
    path = place.top / "activated"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        # The client connects first; the service manager starts the service because of it.
        with socket.socket(socket.AF_UNIX) as early:
            early.connect(str(path))
            process = launch(place, listener)
            assert check_health(path) == SERVING
        assert not place.socket.exists(), "no other socket is made"
        assert place.pid() == process.pid
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0
        assert path.is_socket(), "it is the manager's, not ours to remove"
        # The next start uses the same socket.
        process = launch(place, listener)
        assert check_health(path) == SERVING
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0


@pytest.mark.parametrize("kind", ["tcp", "datagram", "connected", "file"])
def test_what_is_no_listening_unix_socket_is_refused(place, kind):
    if kind == "tcp":
        sock = socket.create_server(("127.0.0.1", 0))
    elif kind == "datagram":
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    elif kind == "connected":
        sock, other = socket.socketpair()
    else:
        sock = (place.top / "file").open("w+")
    process = launch(place, sock)
    assert process.wait(TIMEOUT_S) == 1
    assert "LISTEN_FDS" in place.said()
    sock.close()
    if kind == "connected":
        other.close()


def test_sockets_for_another_process_are_not_ours(place):
    process = place.start(env=place.env(LISTEN_PID=1, LISTEN_FDS=1))
    assert check_health(place.socket) == SERVING
    process.terminate()
    assert process.wait(TIMEOUT_S) == 0


@pytest.mark.parametrize("abstract", [False, True])
def test_the_manager_is_told_of_start_and_end(place, abstract):
    path = place.top / "notify"
    name = f"@agxd-{os.getpid()}" if abstract else str(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name.replace("@", "\0", 1) if abstract else name)
        manager.settimeout(TIMEOUT_S)
        process = place.start(env=place.env(NOTIFY_SOCKET=name), wait=False)
        assert manager.recv(100) == b"READY=1"
        assert check_health(place.socket) == SERVING, "ready is ready"
        process.terminate()
        assert manager.recv(100) == b"STOPPING=1"
        assert process.wait(TIMEOUT_S) == 0
    assert b"NOTIFY_SOCKET" not in environment_of_children(place)


def environment_of_children(place):
    """The environments of the processes of this place, except the daemon's own."""
    found = b""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and place.runs(int(entry.name)):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                found += (entry / "environ").read_bytes()
    return found


def test_a_manager_that_is_gone_does_no_harm(place):
    process = place.start(env=place.env(NOTIFY_SOCKET=place.top / "none"))
    wait_for(lambda: "notify_failed" in place.said(), "the log says so")
    process.terminate()
    assert process.wait(TIMEOUT_S) == 0


def read_unit(name):
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read_string((UNITS / name).read_text())
    return parser


@pytest.mark.parametrize("name", ["agentixd.service.in", "user/agentixd.service.in"])
def test_the_units_leave_sandboxes_alone(name):
    service = read_unit(name)["Service"]
    assert service["Type"] == "notify"
    assert service["KillMode"] == "process"
    # Groups below a service's own group would prevent its next start.
    assert "Delegate" not in service
    assert "--foreground" in service["ExecStart"]


@pytest.mark.parametrize("name", ["agentixd.socket", "user/agentixd.socket"])
def test_the_socket_units_are_for_their_user_only(name):
    unit = read_unit(name)["Socket"]
    assert unit["ListenStream"] == "%t/agentix/agentixd.sock"
    assert unit["SocketMode"] == "0600" and unit["DirectoryMode"] == "0700"


@pytest.mark.parametrize("manager", ["system", "user"])
def test_systemd_finds_nothing_wrong_with_the_units(place, manager):
    analyze = shutil.which("systemd-analyze")
    if not analyze:
        pytest.skip("needs systemd-analyze")
    folder = UNITS if manager == "system" else UNITS / "user"
    for unit in sorted(folder.glob("agentixd.*")):
        text = unit.read_text().replace("@bindir@/agentixd", PROGRAM)
        (place.top / unit.name.removesuffix(".in")).write_text(text)
    done = subprocess.run(
        [analyze, f"--{manager}", "verify", "--man=no", *map(str, place.top.glob("agentixd.*"))],
        capture_output=True,
        text=True,
        env=place.env(),
        timeout=60,
        check=False,
    )
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "agentixd" in line]
    assert ours == []
