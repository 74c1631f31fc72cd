"""agentixd as a test starts, kills and restarts it, with the fake backend and its own places."""

import contextlib
import os
import signal
import socket
import subprocess
import time

import grpc

from agxtest.server import wait_for
from agxtest.world import World

MODES = ("agentix", "agbox")
# Shorter than people want them: `stubborn` commands and missing answers cost the tests time.
QUICK = {"exec": {"grace": "200ms"}, "retry": {"first": "10ms"}}


class Daemon:
    """A daemon and its world. `mode` is "agentix", or "agbox" for --compat agbox."""

    def __init__(self, directory, mode="agentix", config=None, options=()):
        self.directory = directory
        self.mode = mode
        self.options = list(options)
        self.runtime = directory / "run"
        self.data = directory / "data"
        self.config = directory / "config"
        self.home = directory / "home"
        for each in (self.runtime, self.data, self.config, self.home):
            each.mkdir(parents=True, exist_ok=True)
        self.runtime.chmod(0o700)
        self.world = World(directory / "world")
        self.config_path = directory / "config.yaml"
        self.config_path.write_text(as_yaml(joined(QUICK, config or {})))
        self.log_path = directory / "agentixd.log"
        self.process = None
        self.start()

    @property
    def socket(self):
        """Where clients of this mode look."""
        return self.agbox_socket if self.mode == "agbox" else self.own_socket

    @property
    def own_socket(self):
        return self.runtime / "agentix" / "agentixd.sock"

    @property
    def agbox_socket(self):
        return self.runtime / "agbox" / "agboxd.sock"

    @property
    def env(self):
        """The environment of the daemon and of clients that look for it."""
        clean = {
            k: v for k, v in os.environ.items() if not k.startswith(("AGENTIX_", "XDG_", "AGBOX"))
        }
        return clean | {
            "XDG_RUNTIME_DIR": str(self.runtime),
            "XDG_DATA_HOME": str(self.data),
            "XDG_CONFIG_HOME": str(self.config),
            "HOME": str(self.home),
        }

    def start(self, wait=True):
        command = [os.environ["AGENTIXD"], "--foreground", "--config", self.config_path]
        command += ["--backend", f"fake:{self.world.directory}", *self.options]
        if self.mode == "agbox":
            command += ["--compat", "agbox"]
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                list(map(str, command)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.env,
            )
        if wait:
            wait_for(self.answers, "agentixd takes connections")
        return self

    def answers(self):
        assert self.process.poll() is None, f"agentixd ended: {self.log()[-4000:]}"
        with socket.socket(socket.AF_UNIX) as s, contextlib.suppress(OSError):
            s.connect(str(self.socket))
            return True
        return False

    def log(self):
        return self.log_path.read_text(errors="replace")

    def kill(self):
        """kill -9; the world goes on."""
        self.process.kill()
        self.process.wait()

    def stop(self, seconds=10):
        """SIGTERM, and says how long the end took."""
        start = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(seconds) == 0, self.log()[-4000:]
        return time.monotonic() - start

    def restart(self):
        """A crash and a new start."""
        self.kill()
        self.start()

    def close(self):
        """The end of the test: daemon and world, whatever state they are in."""
        try:
            if self.process and self.process.poll() is None:
                self.stop()
        finally:
            if self.process and self.process.poll() is None:
                self.kill()
            self.world.close()
            print(f"---- log of agentixd\n{self.log()[-8000:]}")

    def channel(self):
        return grpc.insecure_channel(f"unix://{self.socket}")


def joined(base, over):
    """Sections of both; keys of `over` win."""
    return {name: base.get(name, {}) | over.get(name, {}) for name in base | over}


def as_yaml(config):
    """YAML of a dict of sections."""
    lines = []
    for section, keys in config.items():
        lines.append(f"{section}:")
        lines += [f"  {key}: {value}" for key, value in keys.items()]
    return "\n".join(lines) + "\n"
