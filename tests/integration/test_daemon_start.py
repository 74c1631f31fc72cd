"""Start of agentixd: lock, sockets, files, the background, and reasons why it does not start."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from agxtest.control import call, check_health, open_channel
from agxtest.daemon import TIMEOUT_S, Place, can_connect, mode_of
from agxtest.server import wait_for
from google.protobuf import descriptor_pool
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

SERVING = health_pb2.HealthCheckResponse.SERVING
EXIT_LOCKED = 75
NOBODY = 65534


@pytest.fixture(name="place")
def fixture_place(deadline):
    place = Place()
    yield place
    place.close()


def stop(process, status=0):
    process.send_signal(signal.SIGTERM)
    assert process.wait(TIMEOUT_S) == status


def test_it_serves_health_and_the_true_protos_by_reflection(place):
    process = place.start()
    assert check_health(place.socket) == SERVING
    with open_channel(place.socket) as channel:
        pool = descriptor_pool.DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
        service = pool.FindServiceByName("agbox.v1.SandboxService")
        assert len(service.methods) == 13
        assert pool.FindServiceByName("agentix.v1.ControlService")
        # The original file: protobuf-c's input has no proto3 `optional`.
        exec_status = pool.FindMessageTypeByName("agbox.v1.CreateSpec")
        assert any(field.has_presence for field in exec_status.fields)
    stop(process)
    assert not place.socket.exists() and place.lock.exists()


def test_what_was_accepted_is_there_after_a_kill(place):
    process = place.start()
    service = "agbox.v1.SandboxService"
    assert call(place.socket, f"{service}/Ping").daemon == "agentixd"
    spec = {"image": "test"}
    made = call(place.socket, f"{service}/CreateSandbox", sandbox_id="one-1", create_spec=spec)
    assert made.sandbox.sandbox_id == "one-1"
    process.kill()
    process.wait()
    process = place.start()
    found = call(place.socket, f"{service}/GetSandbox", sandbox_id="one-1")
    assert found.sandbox.sandbox_id == "one-1"
    assert call(place.socket, "agentix.v1.ControlService/GetStats").backend == "fake"
    stop(process)


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ("nonsense", "'nonsense'"),
        ("fake", "fake:/"),
        ("fake:x", "fake:/"),
    ],
)
def test_a_backend_that_there_is_not_is_told(place, choice, words):
    done = place.call("--foreground", "--backend", choice)
    assert done.returncode == 1 and words in done.stderr


def test_its_files_are_for_its_user_only(place):
    place.run.mkdir(parents=True, mode=0o755)
    old = os.umask(0)
    try:
        assert place.call().returncode == 0
    finally:
        os.umask(old)
    assert mode_of(place.run) == 0o700
    assert mode_of(place.socket) == 0o600
    assert mode_of(place.lock) == 0o600
    assert mode_of(place.data) == 0o700
    assert mode_of(place.log) == 0o600
    images = place.data / "images"  # whose files are those of sandboxes
    for path in place.data.rglob("*"):
        assert images in path.parents or mode_of(path) & 0o077 == 0, path


def test_in_the_background_it_serves_when_the_command_returns(place):
    done = place.call()
    assert (done.returncode, done.stderr) == (0, "")
    assert check_health(place.socket) == SERVING
    pid = place.pid()
    assert os.getsid(pid) == pid
    assert {os.readlink(f"/proc/{pid}/fd/{n}") for n in range(3)} == {"/dev/null"}
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert "daemon.ready" in place.log.read_text()
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not place.runs(pid), "the daemon ends")
    assert not place.socket.exists()


def test_a_held_lock_is_told_with_path_and_pid(place):
    process = place.start()
    for done in (place.call(), place.call("--foreground")):
        assert done.returncode == EXIT_LOCKED
        assert str(place.lock) in done.stderr and str(process.pid) in done.stderr
    # The second one touched nothing.
    assert check_health(place.socket) == SERVING
    stop(process)


def test_of_many_that_start_at_the_same_moment_one_runs(place):
    with ThreadPoolExecutor(8) as pool:
        codes = sorted(pool.map(lambda n: start_one(place, n), range(8)))
    assert codes == [0] + 7 * [EXIT_LOCKED]
    assert check_health(place.socket) == SERVING


def start_one(place, number):
    command = place.command()
    with (place.top / f"err{number}").open("wb") as err:
        return subprocess.run(
            command, stderr=err, stdin=subprocess.DEVNULL, env=place.env(), check=False
        ).returncode


def test_the_socket_and_lock_of_a_killed_daemon_do_not_stand_in_the_way(place):
    process = place.start()
    process.kill()
    process.wait()
    assert place.socket.is_socket() and not can_connect(place.socket)
    assert place.call().returncode == 0
    assert check_health(place.socket) == SERVING


def test_what_is_no_socket_is_not_removed(place):
    place.run.mkdir(parents=True)
    place.socket.write_text("precious")
    done = place.call()
    assert done.returncode == 1 and str(place.socket) in done.stderr
    assert place.socket.read_text() == "precious"


def test_a_directory_of_somebody_else_is_refused(place):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    place.run.mkdir(parents=True)
    os.chown(place.run, NOBODY, NOBODY)
    done = place.call()
    assert done.returncode == 1 and str(place.run) in done.stderr and str(NOBODY) in done.stderr


def test_agentix_socket_names_the_socket_and_its_directory_stays_as_it_is(place):
    folder = place.top / "elsewhere"
    folder.mkdir(mode=0o755)
    path = folder / "my.sock"
    env = place.env(AGENTIX_SOCKET=path, XDG_RUNTIME_DIR=None)
    process = place.start(env=env, wait=False)
    wait_for(lambda: can_connect(path), "it serves there")
    assert mode_of(folder) == 0o755 and mode_of(path) == 0o600
    assert (folder / "my.sock.lock").read_text() == f"{process.pid}\n"
    assert not place.run.exists()
    stop(process)


def test_without_a_runtime_directory_a_user_is_told_what_to_set(place):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    place.top.chmod(0o755)
    done = place.call(env=place.env(XDG_RUNTIME_DIR=None), prefix=as_nobody())
    assert done.returncode == 2 and "XDG_RUNTIME_DIR" in done.stderr


def as_nobody():
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def test_another_user_is_refused_and_one_of_the_list_is_served(place, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    process = place.start()
    # The widest mode that it can get by mistake: the daemon checks who calls.
    for path in (place.top, place.run_home, place.run):
        path.chmod(0o755)
    place.socket.chmod(0o666)
    assert call_as_nobody(place.socket) == grpc.StatusCode.PERMISSION_DENIED.name
    stop(process)
    place.configure(f"allow_uids: [{NOBODY}]\n")
    process = place.start()
    assert check_health(place.socket) == SERVING  # the socket's mode comes behind its first moment
    assert mode_of(place.run) == 0o711 and mode_of(place.socket) == 0o666
    assert mode_of(place.lock) == 0o600
    assert call_as_nobody(place.socket) == grpc.StatusCode.OK.name
    stop(process)


def call_as_nobody(path):
    """The status of a call by another user: a child process changes its user id."""
    reader, writer = os.pipe()
    # In a new interpreter without threads, because grpcio does not survive a fork.
    script = (
        "import os, sys, grpc\n"
        "from grpc_health.v1 import health_pb2, health_pb2_grpc\n"
        f"channel = grpc.insecure_channel('unix://{path}')\n"
        "stub = health_pb2_grpc.HealthStub(channel)\n"
        # It connects at the first call; its imports may be in directories that others may not read.
        f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "status = 'OK'\n"
        "try:\n"
        f"    stub.Check(health_pb2.HealthCheckRequest(), timeout={TIMEOUT_S})\n"
        "except grpc.RpcError as error:\n"
        "    status = error.code().name\n"
        f"os.write({writer}, status.encode())\n"
    )
    with os.fdopen(reader) as out:
        subprocess.run(
            [sys.executable, "-c", script], pass_fds=[writer], timeout=TIMEOUT_S * 2, check=True
        )
        os.close(writer)
        return out.read()


# What another user runs: it greets on every connection, so that only a rule for refused peers ends
# them soon, makes no call, and says when the daemon has ended them all.
HOLDER = """
import contextlib, socket, sys
held = []
for _ in range(int(sys.argv[2])):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    with contextlib.suppress(ConnectionError):
        s.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + bytes(3) + b"\\4" + bytes(5))
    held.append(s)
print("open", flush=True)
for s in held:
    with contextlib.suppress(ConnectionError):
        while s.recv(4096):
            pass
print("closed", flush=True)
"""


@contextlib.contextmanager
def held_by_nobody(path, n):
    """Another user's process that has opened `n` connections; reads what it says."""
    holder = subprocess.Popen(
        ["/usr/bin/env", "python3", "-I", "-c", HOLDER, str(path), str(n)],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd="/",
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout.readline() == "open\n"
        yield holder.stdout
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()


def test_users_who_are_refused_take_no_connections_from_others(place):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    limit = "limits: {connections: 100}\n"
    place.configure(f"{limit}allow_uids: [{NOBODY}]\n")
    process = place.start()
    for path in (place.top, place.run_home):
        path.chmod(0o755)
    assert check_health(place.socket) == SERVING
    with held_by_nobody(place.socket, 300):
        with pytest.raises(grpc.RpcError) as told:
            check_health(place.socket)
        assert told.value.code() == grpc.StatusCode.UNAVAILABLE, "the attempt itself"
    stop(process)
    place.configure(limit)
    process = place.start()
    place.run.chmod(0o755)
    place.socket.chmod(0o666)
    with held_by_nobody(place.socket, 300) as said:
        for _ in range(20):
            assert check_health(place.socket) == SERVING
        assert said.readline() == "closed\n"
        assert call_as_nobody(place.socket) == grpc.StatusCode.PERMISSION_DENIED.name
    stop(process)


@pytest.mark.parametrize("kind", ["full", "read-only"])
def test_a_disk_that_cannot_be_written_is_told(place, kind):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    place.data.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "agx", place.data]
    subprocess.run(mount, check=True)
    try:
        if kind == "full":
            with contextlib.suppress(OSError), open(place.data / "filler", "wb") as filler:
                filler.write(b"\0" * 65536)
        else:
            subprocess.run(["mount", "-o", "remount,ro", place.data], check=True)
        done = place.call("--foreground")
    finally:
        subprocess.run(["umount", "--lazy", place.data], check=True)
    assert done.returncode == 1, done.stderr
    assert str(place.data) in done.stderr
    assert ("No space left" if kind == "full" else "Read-only") in done.stderr


def test_a_log_that_cannot_be_opened_is_told_by_the_command_that_started_it(place):
    place.log.mkdir(parents=True)
    done = place.call()
    assert done.returncode == 1 and str(place.log) in done.stderr
    assert not place.socket.exists()


def test_closed_standard_descriptors_do_no_harm(place):
    done = place.call(prefix=["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh"])
    assert done.returncode == 0
    pid = place.pid()
    assert {os.readlink(f"/proc/{pid}/fd/{n}") for n in range(3)} == {"/dev/null"}


def test_the_limit_of_open_files_is_raised(place):
    done = place.call(prefix=["sh", "-c", 'ulimit -S -n 256; exec "$@"', "sh"])
    assert done.returncode == 0
    for line in Path(f"/proc/{place.pid()}/limits").read_text().splitlines():
        if line.startswith("Max open files"):
            soft, hard = line.split()[3:5]
            assert soft == hard


def test_a_path_too_long_for_a_socket_is_told(place):
    env = place.env(AGENTIX_SOCKET=f"{place.top}/{'x' * 120}")
    done = place.call(env=env)
    assert done.returncode == 1 and "107" in done.stderr


def test_a_live_socket_of_somebody_else_is_not_taken(place):
    place.run.mkdir(parents=True, mode=0o700)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(place.socket))
        other.listen()
        done = place.call()
        assert done.returncode == 1 and str(place.socket) in done.stderr
        assert can_connect(place.socket)


def test_daemons_of_a_test_that_is_killed_end():
    script = (
        "import time\n"
        "from agxtest.daemon import Place\n"
        "front, back = Place(), Place()\n"
        "front.start()\n"
        "assert back.call().returncode == 0\n"
        "print(front.top, front.pid(), back.top, back.pid(), flush=True)\n"
        "time.sleep(600)\n"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=env
    ) as test:
        words = test.stdout.readline().split()
        test.kill()
    places = [Place(Path(top)) for top in words[::2]]
    pids = [int(pid) for pid in words[1::2]]
    for place, pid in zip(places, pids, strict=True):
        wait_for(lambda place=place, pid=pid: not place.runs(pid), "the daemon ends")
        place.close()


@pytest.mark.parametrize("broken", ["data", "log", "store", "socket"])
def test_a_start_in_the_background_that_fails_says_why_once(place, broken):
    place.data.mkdir(parents=True, mode=0o700)
    place.run.mkdir(parents=True, mode=0o700)
    if broken == "data":
        place.data.rmdir()
        place.data.touch()
    elif broken == "log":
        place.log.mkdir()
    elif broken == "store":
        (place.data / "store").touch()
    else:
        place.socket.mkdir()
    done = place.call()
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("agentixd: ") and str(place.top) in line
