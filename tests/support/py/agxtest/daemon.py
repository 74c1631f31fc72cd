"""Starts, kills and restarts agentixd in tests, with the fake backend and its own directories."""

import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import grpc

from agxtest import guard
from agxtest.dockerd import Dockerd
from agxtest.server import wait_for
from agxtest.world import World

TIMEOUT_S = 60
PROGRAM = os.environ.get("AGENTIXD", "agentixd")
# The fake backend's sandboxes live in a process that outlives the daemon.
WORLD = Path(PROGRAM).with_name("agentix-fakeworld")
MODES = ("agentix", "agbox")
# Shorter than the defaults, because `stubborn` commands and missing answers cost the tests time.
QUICK = {"exec": {"grace": "200ms"}, "retry": {"first": "10ms"}}


class Place:
    """Directories for one daemon, short enough for a socket's path, and the daemons in them.

    Every process with this place's XDG_RUNTIME_DIR ends with this process, even if it is killed.
    """

    def __init__(self, top=None):
        self.top = top or Path(tempfile.mkdtemp(prefix="agxd"))
        self.run_home, self.data_home, self.config_home, self.home = (
            self.top / name for name in ("run", "data", "conf", "home")
        )
        self.run, self.data = self.run_home / "agentix", self.data_home / "agentix"
        self.socket, self.lock = self.run / "agentixd.sock", self.run / "agentixd.lock"
        self.log = self.data / "agentixd.log"
        self.config = self.config_home / "agentix" / "config.yaml"
        self.world = self.top / "world"
        self.stderr = self.top / "stderr"
        self.processes = []
        guard.watch(self.run_home)

    def env(self, **changes):
        """The environment of a daemon here; a value of None removes a variable."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("AGENTIX_", "XDG_"))}
        env |= {
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.run_home),
            "XDG_DATA_HOME": str(self.data_home),
            "XDG_CONFIG_HOME": str(self.config_home),
        }
        env |= {k: str(v) for k, v in changes.items() if v is not None}
        return {k: v for k, v in env.items() if changes.get(k, "") is not None}

    def configure(self, text):
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(text)

    def command(self, *options, program=PROGRAM):
        return [str(program), *self.backend(), *map(str, options)]

    def backend(self):
        return ["--backend", f"fake:{self.world}"]

    def call(self, *options, env=None, prefix=()):
        """Runs the daemon and waits for the end of the started process."""
        # A file, not a pipe: a daemon in the background must not block the test.
        with self.stderr.open("w+") as stderr:
            done = subprocess.run(
                [*prefix, *self.command(*options)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env=env or self.env(),
                timeout=TIMEOUT_S,
                check=False,
            )
            stderr.seek(0)
            done.stderr = stderr.read()
        return done

    def start(self, *options, env=None, wait=True, **popen):
        """Starts a daemon in the foreground; its log is in place.stderr."""
        with self.stderr.open("ab") as stderr:
            process = subprocess.Popen(
                self.command("--foreground", *options),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env=env or self.env(),
                **popen,
            )
        self.processes.append(process)
        if wait:
            wait_for(lambda: self.serves(process), "agentixd serves")
        return process

    def serves(self, process=None, at=None):
        if process is not None and process.poll() is not None:
            raise AssertionError(f"agentixd ended with {process.returncode}: {self.said()}")
        return can_connect(at or self.socket)

    def said(self):
        return self.stderr.read_text(errors="replace") if self.stderr.exists() else ""

    def pid(self):
        """The pid of the daemon that holds the lock."""
        return int(self.lock.read_text())

    def close(self):
        """Ends our remaining processes by their pids, and removes everything."""
        print(f"---- stderr\n{self.said()[-4000:]}")
        if self.log.is_file():
            print(f"---- log\n{self.log.read_text()[-4000:]}")
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.kill_background()
        if self.world.exists():
            subprocess.run([WORLD, "--stop", self.world], check=False, timeout=TIMEOUT_S)
        shutil.rmtree(self.top)

    def kill_background(self):
        """The pid in the lock file, if that process is still our daemon."""
        if not self.lock.exists() or not self.lock.read_text().strip():
            return
        pid = self.pid()
        if self.runs(pid):
            with contextlib.suppress(ProcessLookupError):  # it was about to end
                os.kill(pid, signal.SIGKILL)
            wait_for(lambda: not self.runs(pid), "the daemon in the background is gone")

    def runs(self, pid):
        """Whether that process is a daemon of this place."""
        try:
            words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state != "Z" and f"XDG_RUNTIME_DIR={self.run_home}".encode() in words


class Daemon:
    """One daemon and its fake world. `mode` is "agentix", or "agbox" for --compat agbox."""

    def __init__(self, directory, mode="agentix", config=None, options=()):
        self.mode = mode
        self.place = self.make_place(directory)
        for each in (self.runtime, self.data, self.place.config_home, self.place.home):
            each.mkdir(parents=True, exist_ok=True)
        self.runtime.chmod(0o700)
        self.world = self.make_world()
        config_path = directory / "config.yaml"
        config_path.write_text(as_yaml(joined(QUICK, config or {})))
        self.options = ["--config", config_path, *options]
        if mode == "agbox":
            self.options += ["--compat", "agbox"]
        self.process = None
        self.killed = set()
        self.start()

    def make_place(self, directory):
        return Place(directory)

    def make_world(self):
        """The world that contains its sandboxes."""
        return World(self.place.world)

    @property
    def runtime(self):
        return self.place.run_home

    @property
    def data(self):
        return self.place.data_home

    @property
    def socket(self):
        """The socket that clients of this mode use."""
        return self.agbox_socket if self.mode == "agbox" else self.own_socket

    @property
    def own_socket(self):
        return self.place.socket

    @property
    def agbox_socket(self):
        return self.runtime / "agbox" / "agboxd.sock"

    @property
    def env(self):
        """The environment of the daemon and of its clients."""
        return {k: v for k, v in self.place.env().items() if not k.startswith("AGBOX")}

    def start(self, wait=True):
        self.process = self.place.start(*self.options, env=self.env, wait=False)
        if wait:
            wait_for(self.answers, "agentixd takes connections")
        return self

    def answers(self):
        """Whether the daemon answers. After a kill, a program that the daemon was just starting may
        keep the socket for a moment without answering."""
        if not self.place.serves(self.process, self.socket):
            return False
        listener = listener_of(self.socket)
        return listener is not None and listener not in self.killed - {self.process.pid}

    def log(self):
        return self.place.said()

    def kill(self):
        """Kills the daemon with SIGKILL; its world continues."""
        self.process.kill()
        self.process.wait()
        self.killed.add(self.process.pid)

    def stop(self, seconds=60):
        """Stops the daemon with SIGTERM; returns how long that took."""
        start = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(seconds) == 0, self.log()[-4000:]
        return time.monotonic() - start

    def restart(self):
        """Kills the daemon and starts it again."""
        self.kill()
        self.start()

    def close(self):
        """Ends the daemon and its world, in any state."""
        try:
            if self.process and self.process.poll() is None:
                self.stop()
        finally:
            if self.process and self.process.poll() is None:
                self.kill()
            self.world.close()
            print(f"---- log of agentixd\n{self.log()[-8000:]}")

    def channel(self):
        # Needs its own connection: channels to the same target would share one, even one that has
        # not yet noticed that its daemon was killed.
        options = [("grpc.use_local_subchannel_pool", 1)]
        return grpc.insecure_channel(f"unix://{self.socket}", options=options)


class DockerPlace(Place):
    """`program` is the program to run, with a command before it if needed."""

    def __init__(self, top, mode, program=(PROGRAM,)):
        super().__init__(top)
        self.mode, self.program = mode, program

    def backend(self):
        """The backend option; --compat agbox needs none, because docker is its default."""
        return [] if self.mode == "agbox" else ["--backend", "docker"]

    def command(self, *options):
        return [*map(str, self.program), *self.backend(), *map(str, options)]


class DockerDaemon(Daemon):
    """A daemon on the Docker Engine of the test's box."""

    def make_place(self, directory):
        return DockerPlace(directory, self.mode)

    def make_world(self):
        return Dockerd.here()

    @property
    def env(self):
        return super().env | self.world.env


class NativePlace(Place):
    def backend(self):
        return ["--backend", "native"]


class NativeWorld:
    """The machine as the world; its sandboxes end with the test's box."""

    def close(self):
        pass


class NativeDaemon(Daemon):
    """A daemon with the native backend, in the test's box."""

    def make_place(self, directory):
        return NativePlace(directory)

    def make_world(self):
        return NativeWorld()


def can_connect(path):
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(str(path))
        except OSError:
            return False
    return True


def listener_of(path):
    """The pid of the process that made this socket listen; None: nothing listens."""
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(str(path))
        except OSError:
            return None
        peer = s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return struct.unpack("3i", peer)[0]


def mode_of(path):
    return path.lstat().st_mode & 0o7777


def joined(base, over):
    """Merges the sections of both; keys of `over` win."""
    return {name: base.get(name, {}) | over.get(name, {}) for name in base | over}


def as_yaml(config):
    """YAML of a dict of sections."""
    lines = []
    for section, keys in config.items():
        lines.append(f"{section}:")
        lines += [f"  {key}: {value}" for key, value in keys.items()]
    return "\n".join(lines) + "\n"
