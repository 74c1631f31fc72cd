"""agentixd as the tests of its process start it, in the foreground or not, with its own paths."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import grpc
from agxtest.server import wait_for
from google.protobuf import descriptor_pool, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

TIMEOUT_S = 20
PROGRAM = os.environ.get("AGENTIXD", "agentixd")
# The fake backend's sandboxes are in a process that outlives the daemon.
WORLD = Path(PROGRAM).parents[1] / "backend" / "agentix-fakeworld"


class Place:
    """Directories for one daemon, short enough for a socket's path, and the daemons in them."""

    def __init__(self):
        self.top = Path(tempfile.mkdtemp(prefix="agxd"))
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

    def env(self, **changes):
        """Of a daemon here; a value of None leaves a variable out."""
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
        """Runs it to the end of the process that was started."""
        # A file, not a pipe: what goes into the background must not hold the test up.
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
        """One in the foreground; its log is in place.stderr."""
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

    def serves(self, process=None):
        if process is not None and process.poll() is not None:
            raise AssertionError(f"agentixd ended with {process.returncode}: {self.said()}")
        return can_connect(self.socket)

    def said(self):
        return self.stderr.read_text(errors="replace") if self.stderr.exists() else ""

    def pid(self):
        """Of the one that holds the lock."""
        return int(self.lock.read_text())

    def close(self):
        """Ends what is left, by the pids that are ours, and removes everything."""
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
        """The daemon of the lock file, if it is still one of ours."""
        if not self.lock.exists() or not self.lock.read_text().strip():
            return
        pid = self.pid()
        if self.runs(pid):
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: not self.runs(pid), "the daemon in the background is gone")

    def runs(self, pid):
        """Is that process a daemon of this place?"""
        try:
            words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state != "Z" and f"XDG_RUNTIME_DIR={self.run_home}".encode() in words


def can_connect(path):
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(str(path))
        except OSError:
            return False
    return True


def open_channel(path):
    # A connection of its own: channels to the same target would share one.
    options = [("grpc.use_local_subchannel_pool", 1)]
    return grpc.insecure_channel(f"unix://{path}", options=options)


def check_health(path):
    """What health says of the whole server."""
    with open_channel(path) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        return stub.Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_S).status


class Control:
    """Calls by names that reflection describes: control.call("agbox.v1.SandboxService/Ping")."""

    def __init__(self, path):
        self.channel = open_channel(path)
        self.pool = descriptor_pool.DescriptorPool(ProtoReflectionDescriptorDatabase(self.channel))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.channel.close()

    def prepare(self, method, fields):
        service, name = method.split("/")
        kind = self.pool.FindServiceByName(service).FindMethodByName(name)
        request = message_factory.GetMessageClass(kind.input_type)(**fields)
        return request, message_factory.GetMessageClass(kind.output_type).FromString

    def call(self, method, **fields):
        request, parse = self.prepare(method, fields)
        do = self.channel.unary_unary(f"/{method}", lambda m: m.SerializeToString(), parse)
        return do(request, timeout=TIMEOUT_S)

    def stream(self, method, **fields):
        request, parse = self.prepare(method, fields)
        do = self.channel.unary_stream(f"/{method}", lambda m: m.SerializeToString(), parse)
        return do(request)


def call(path, method, **fields):
    """One unary call on a connection of its own."""
    with Control(path) as control:
        return control.call(method, **fields)


def mode_of(path):
    return path.lstat().st_mode & 0o7777
