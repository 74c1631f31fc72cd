"""The Docker Engine of a test, inside the namespaces that tests/support/docker_box.py made."""

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from urllib.parse import quote

from agxtest import linux
from agxtest.server import wait_for

PATH = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
# /run belongs to the box, so these default paths are only of this engine.
SOCKET = Path("/run/docker.sock")
PID_FILE = Path("/run/docker.pid")
CONTAINERD = Path("/run/containerd.sock")
PROGRAMS = ("dockerd", "containerd", "runc", "docker", "iptables")
START_SECONDS = 180
# If dockerd starts containerd itself, it kills it after three missing answers in a row, and
# containerd gives its shims only seconds: too short on a busy machine. So we start this containerd
# ourselves, with long timeouts.
CONTAINERD_CONFIG = """
version = 2
root = "{directory}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "{socket}"
[timeouts]
"io.containerd.timeout.shim.cleanup" = "120s"
"io.containerd.timeout.shim.load" = "120s"
"io.containerd.timeout.shim.shutdown" = "120s"
"io.containerd.timeout.task.state" = "120s"
"""


def missing():
    """The engine's programs that the machine lacks."""
    return [each for each in PROGRAMS if not shutil.which(each, path=PATH)]


def connections():
    """The number of the engine's connections: sockets of its address that do not listen."""
    lines = Path("/proc/net/unix").read_text().splitlines()[1:]
    found = [line.split() for line in lines]
    listens = "00010000"  # the flag of a listening socket
    return len([f for f in found if f[7:] == [str(SOCKET)] and f[3] != listens])


def accepts(path):
    """Whether the socket accepts connections."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as s:
        s.connect(str(path))
        return True
    return False


class EngineError(Exception):
    """The engine's error message, with its HTTP status."""

    def __init__(self, status, message):
        super().__init__(f"{status}: {message}")
        self.status, self.message = status, message


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, seconds):
        super().__init__("engine", timeout=seconds)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Dockerd:
    """The engine: its Engine API, its start and end."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.log_path = self.directory / "dockerd.log"

    @classmethod
    def make(cls, directory):
        """Makes its directories and starts containerd; PID 1 of the box calls this once."""
        (directory / "config").mkdir()
        made = cls(directory)
        made.start_containerd()
        return made

    @classmethod
    def here(cls):
        """The engine of the box that this process is in."""
        return cls(os.environ["AGX_DOCKER_BOX"])

    @property
    def env(self):
        return {
            "AGX_DOCKER_BOX": str(self.directory),
            "DOCKER_HOST": f"unix://{SOCKET}",
            "DOCKER_CONFIG": str(self.directory / "config"),
        }

    # -- its life

    def start_containerd(self):
        """Starts containerd, which runs until the box ends; containers do not depend on it."""
        config = self.directory / "containerd.toml"
        config.write_text(CONTAINERD_CONFIG.format(directory=self.directory, socket=CONTAINERD))
        self.spawn(["containerd", "--config", config], accepts, CONTAINERD)

    def spawn(self, command, is_up, *args):
        """Starts a program and waits until is_up() is true."""
        env = os.environ | {"PATH": PATH}
        for name in ("DOCKER_HOST", "DOCKER_CONFIG"):
            env.pop(name, None)
        with self.log_path.open("ab") as log:
            process = subprocess.Popen(
                list(map(str, command)), env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        end = time.monotonic() + START_SECONDS
        while not is_up(*args):
            if process.poll() is not None or time.monotonic() > end:
                raise EngineError(0, f"{command[0]} does not answer: {self.log()[-2000:]}")
            time.sleep(0.02)

    def start(self, *options):
        """Starts the engine, also after kill() or stop(); returns when it answers."""
        command = ["dockerd", "--data-root", self.directory / "data", "--host", f"unix://{SOCKET}"]
        command += ["--containerd", CONTAINERD, "--exec-opt", "native.cgroupdriver=cgroupfs"]
        command += ["--cgroup-parent", f"/{self.directory.name}", *options]
        self.spawn(command, self.answers)
        return self

    def runs(self):
        """Whether the engine runs, even if it does not answer yet."""
        return PID_FILE.exists()

    def answers(self):
        with contextlib.suppress(OSError, EngineError, http.client.HTTPException):
            self.call("GET", "/_ping", seconds=2)
            return True
        return False

    def pid(self):
        return int(PID_FILE.read_text())

    def end(self, signo):
        """Sends the engine a signal and waits until it has ended. Containers may be left."""
        pidfd = os.pidfd_open(self.pid())
        signal.pidfd_send_signal(pidfd, signo)
        linux.wait_readable(pidfd)
        with contextlib.suppress(ChildProcessError):  # PID 1 of the box reaps its children
            os.waitid(os.P_PIDFD, pidfd, os.WEXITED)
        os.close(pidfd)
        PID_FILE.unlink(missing_ok=True)  # another process may soon have its pid

    def kill(self):
        self.end(signal.SIGKILL)

    def stop(self):
        self.end(signal.SIGTERM)

    def close(self):
        """Does nothing, because the box ends the engine."""

    def settle(self):
        """Waits until the requests of closed clients, such as a killed daemon, are finished:
        the engine carries out a request that was sent, and keeps its connection until then. No
        other client may be connected."""
        wait_for(lambda: connections() == 0, "the engine has done what it was asked for")

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    # -- the Engine API

    def call(self, method, path, body=None, kind="application/json", seconds=180):
        """Calls the engine; returns its answer, or its JSON. EngineError from status 400 on."""
        if body is not None and kind == "application/json":
            body = json.dumps(body).encode()
        connection = UnixConnection(SOCKET, seconds)
        try:
            connection.request(method, path, body, {"Content-Type": kind} if body else {})
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        try:
            found = json.loads(data) if data else None
        except ValueError:
            found = data.decode(errors="replace")
        if answer.status >= 400:
            message = found.get("message") if isinstance(found, dict) else found
            raise EngineError(answer.status, message)
        return found

    def load(self, name, tar, changes=()):
        """Imports an image with one layer."""
        repo, _, tag = name.partition(":")
        query = f"fromSrc=-&repo={quote(repo)}&tag={quote(tag or 'latest')}"
        query += "".join(f"&changes={quote(change)}" for change in changes)
        self.call("POST", f"/images/create?{query}", tar, kind="application/x-tar")

    def inspect(self, container):
        """The container, or None."""
        try:
            return self.call("GET", f"/containers/{quote(container)}/json")
        except EngineError as error:
            if error.status == 404:
                return None
            raise

    def containers(self, label=None):
        """All containers, running or not."""
        filters = quote(json.dumps({"label": [label]} if label else {}))
        return self.call("GET", f"/containers/json?all=1&filters={filters}")

    def networks(self):
        """All networks except the engine's own three."""
        found = self.call("GET", "/networks")
        return [n for n in found if n["Name"] not in ("bridge", "host", "none")]

    def run(self, *words, check=True, **options):
        """Runs the docker command and returns its output."""
        done = subprocess.run(
            ["/usr/bin/docker", *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
            **options,
        )
        if check and done.returncode != 0:
            raise EngineError(done.returncode, done.stderr.strip())
        return done.stdout
