"""Runs the program agentix in tests."""

import os
import pty
import shutil
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

from agxtest import guard

TIMEOUT_S = 60


class Cli:
    """agentix with its own directories, and without a daemon unless a test starts one."""

    def __init__(self):
        self.program = os.environ["AGENTIX"]
        self.top = Path(tempfile.mkdtemp(prefix="agxcli"))
        self.socket = self.top / "run" / "agentix" / "agentixd.sock"
        self.socket.parent.mkdir(parents=True, mode=0o700)
        guard.watch(self.top / "run")

    def env(self, **changes):
        """The environment; a value of None removes a variable."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("AGENTIX_", "XDG_"))}
        env |= {
            "HOME": str(self.top / "home"),
            "XDG_RUNTIME_DIR": str(self.top / "run"),
            "XDG_DATA_HOME": str(self.top / "data"),
            "XDG_CONFIG_HOME": str(self.top / "conf"),
            "AGENTIX_AUTOSTART": "0",
        }
        env |= {k: str(v) for k, v in changes.items() if v is not None}
        return {k: v for k, v in env.items() if changes.get(k, "") is not None}

    def run(self, *words, env=None, text=True, **options):
        return subprocess.run(
            [self.program, *map(str, words)],
            capture_output=True,
            text=text,
            env=env or self.env(),
            timeout=TIMEOUT_S,
            check=False,
            stdin=None if "input" in options else subprocess.DEVNULL,
            **options,
        )

    def start(self, *words, env=None, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
        command = [self.program, *map(str, words)]
        return subprocess.Popen(command, env=env or self.env(), **options)

    def run_on_terminal(self, *words, env=None, screen=None):
        """Runs agentix with a terminal as stderr: (exit status, stdout, the terminal's text).

        `screen`, a list, gets the pieces as they arrive, so that another thread can read them."""
        ours, theirs = pty.openpty()
        got = [] if screen is None else screen

        def read():
            try:
                while data := os.read(ours, 65536):
                    got.append(data)
            except OSError:
                pass

        process = self.start(*words, env=env, stdin=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        reader = threading.Thread(target=read)
        reader.start()
        stdout, _ = process.communicate(timeout=TIMEOUT_S)
        reader.join()
        os.close(ours)
        return process.returncode, stdout, b"".join(got).decode()

    def close(self):
        shutil.rmtree(self.top)


class DaemonCli:
    """agentix with the daemon of a test; a subclass provides `daemon`."""

    def command(self):
        return [os.environ["AGENTIX"]]

    def run(self, *words):
        return subprocess.run(
            [*self.command(), *map(str, words)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=self.daemon.env | {"AGENTIX_AUTOSTART": "0"},
            timeout=TIMEOUT_S,
            check=False,
        )

    def ok(self, *words):
        """Runs agentix, which must succeed, and returns its output."""
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout


def interrupt(process, signo=signal.SIGINT):
    process.send_signal(signo)
    out, err = process.communicate(timeout=TIMEOUT_S)
    return process.returncode, out, err
