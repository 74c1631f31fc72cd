"""Starts and stops agentix-server in tests.

stop() checks the end of every server: exit status 0, no process and no socket file left.
`descriptors` checks that no descriptor leaked while it ran.
"""

import contextlib
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# A limit only ends a hang: under sanitizers, or on a busy machine, everything takes long.
TIMEOUT_S = 60


def wait_for(condition, what, seconds=TIMEOUT_S):
    """Waits until condition() is true and returns its value."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.005)


def free_port():
    """A free port for a program that cannot choose one, below the kernel's ephemeral range."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(min(10000, lowest - 1), lowest)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def health(path):
    """The body of GET /health over a Unix socket."""
    connection = http.client.HTTPConnection("localhost", timeout=TIMEOUT_S)
    connection.sock = socket.socket(socket.AF_UNIX)
    try:
        connection.sock.settimeout(TIMEOUT_S)
        connection.sock.connect(str(path))
        connection.request("GET", "/health")
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def children(pid):
    """The processes whose parent is pid, including zombies."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(stat.rpartition(")")[2].split()[1]) == pid:
            found.append(int(entry.name))
    return found


def session_members(sid):
    """The living processes of a session, such as the worker and its descendants."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == sid and fields[0] != "Z":
            found.append(int(entry.name))
    return found


def states(pid):
    """The state of each thread: a letter as in proc(5)."""
    found = set()
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            found.add(stat.read_text().rpartition(")")[2].split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue  # the thread has ended meanwhile
    return found


def hold(pid):
    """Stops a process with SIGSTOP and waits until it has stopped; SIGCONT continues it."""
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: states(pid) == {"T"}, f"process {pid} is stopped")


@contextlib.contextmanager
def held_up(pid):
    """Keeps a process stopped during the block, so that it sees all changes at once afterwards."""
    try:
        hold(pid)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def rss_kib(pid):
    """The resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError(f"process {pid} has no VmRSS")


def assert_grows_less(pid, before_kib, limit_kib):
    """Asserts that memory is bounded, except under a sanitizer, whose own memory is larger."""
    if os.environ.get("SANITIZE", "none") == "none":
        grown = rss_kib(pid) - before_kib
        assert grown < limit_kib, f"{grown} KiB more"


def fake_worker(directory, mode="ready"):
    """Makes a program that runs fake_worker.py in this mode; its interpreter has msgpack."""
    program = directory / f"worker-{mode}"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {HERE / 'fake_worker.py'} {mode}\n")
    program.chmod(0o755)
    return program


class Server:
    """A running agentix-server on a Unix socket and on its own TCP port.

    `prepare` is called in its process before the program starts.
    """

    def __init__(self, directory, *options, env=None, worker=None, wait=True, prepare=None):
        directory.mkdir(parents=True, exist_ok=True)
        self.socket_path = directory / "s"
        self.log_path = directory / "server.log"
        self.port_file = directory / "port"
        command = [os.environ["AGENTIX_SERVER"], "--socket", self.socket_path]
        command += ["--host", "127.0.0.1", "--port", "0", "--port-file", self.port_file]
        if worker:
            command += ["--worker", worker]
        clean = {k: v for k, v in os.environ.items() if not k.startswith("AGENTIX_")}
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [*map(str, command), *map(str, options)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=clean | (env or {}),
                preexec_fn=prepare,
            )
        self.sessions = set()
        if wait:
            wait_for(self.is_up, "agentix-server answers /health")
            self.port = int(self.port_file.read_text())
            self.url = f"http://127.0.0.1:{self.port}"

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        return self.log_path.read_text(errors="replace")

    def is_up(self):
        if self.process.poll() is not None:
            raise AssertionError(f"agentix-server ended with {self.process.returncode}")
        if not self.port_file.exists():
            return False
        try:
            return self.health()
        except (ConnectionError, FileNotFoundError):
            return False

    def health(self):
        return health(self.socket_path)

    def worker_pid(self):
        """Waits until the worker is ready and returns its pid."""
        pid = wait_for(self.ready_worker, "the worker is ready")
        self.sessions.add(pid)  # it leads its own session
        return pid

    def ready_worker(self):
        found = children(self.pid)
        return found[0] if len(found) == 1 and self.health()["worker"] == "ready" else None

    def kill_worker(self):
        """Kills the worker with SIGKILL; returns its pid."""
        pid = self.worker_pid()
        os.kill(pid, signal.SIGKILL)
        return pid

    def descriptors(self):
        """The number of open descriptors. The server is not dumpable, so only root can read it."""
        if os.geteuid() != 0:
            pytest.skip("only root sees the descriptors of agentix-server")
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def settle_descriptors(self, count):
        """Waits until at most `count` are open, because closing takes a turn or two of the loop."""
        wait_for(lambda: self.descriptors() <= count, f"at most {count} descriptors are open")

    def stop(self, signo=signal.SIGTERM, status=0):
        """Stops the server and checks that nothing is left."""
        if self.process.poll() is None:
            self.sessions |= set(children(self.pid))
            self.process.send_signal(signo)
        try:
            assert self.process.wait(TIMEOUT_S) == status, self.log()[-4000:]
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
        if status == 0:
            assert not self.socket_path.exists(), "the socket file is still there"
        for session in self.sessions:
            wait_for(lambda s=session: not session_members(s), "no process of the worker is left")
