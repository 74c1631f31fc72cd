"""usage: demo.py BUILD-DIR

Does the main job of Agentix once: makes a sandbox whose main process is agentix-server, and calls
the functions of examples/remote_call/words.py in it from outside. The demo starts its own daemon,
with the native backend, in a temporary directory and in its own network namespace, so it changes
nothing on the machine. If no such sandbox can be made, it prints the reason, and the server runs
without one.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "remote_call"
SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
NAME = "demo"
TIMEOUT_S = 120


class CannotRun(Exception):
    """The reason why no sandbox can be made here."""


class Failed(Exception):
    """The demo failed; the text has the reason and the log."""


def say(what, text):
    print(f"{what:<9} {text}", flush=True)


@contextlib.contextmanager
def undisturbed():
    """Blocks the signals until the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def hear_signals():
    """Unblocks the signals in a child that was started with them blocked."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def wait_for(true, seconds=TIMEOUT_S):
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.002)
    return true()


def can_connect(path):
    with socket.socket(socket.AF_UNIX) as s, contextlib.suppress(OSError):
        s.connect(str(path))
        return True
    return False


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


class Stage:
    """The temporary directory, and the programs whose files are in it."""

    def __init__(self, build):
        self.build = build
        self.top = Path(tempfile.mkdtemp(prefix="agentix-demo-"))
        # The server's socket has the same path in the sandbox and outside.
        self.share = self.top / "share"
        self.share.mkdir()
        self.socket = self.share / "rt.sock"

    def server(self):
        """The command of the server."""
        return [
            self.build / "src" / "runtime" / "agentix-server",
            *("--socket", self.socket),
            *("--python", sys.executable),
            *("--package", self.build / "python"),
            *("--path", EXAMPLE),
        ]

    def call(self):
        """Makes the calls, in a separate process, which prints the results."""
        paths = f"{self.build / 'python'}:{EXAMPLE}"
        done = subprocess.run(
            [sys.executable, EXAMPLE / "main.py", f"unix://{self.socket}"],
            env=os.environ | {"PYTHONPATH": paths},
            timeout=TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            raise Failed(
                f"the client ended with {done.returncode}; the server said:\n{self.said()}"
            )

    def await_server(self):
        wait_for(lambda: can_connect(self.socket) or self.has_ended())
        if not can_connect(self.socket):
            raise Failed(f"the server did not start:\n{self.said()}")

    def close(self):
        shutil.rmtree(self.top)


class Sandbox(Stage):
    """A daemon and its only sandbox."""

    def __init__(self, build):
        super().__init__(build)
        self.run, self.data = self.top / "run", self.top / "data"
        for each in (self.run, self.data, self.top / "home"):
            each.mkdir(mode=0o700)
        ours = ("AGENTIX_", "XDG_")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        self.env |= {
            "HOME": str(self.top / "home"),
            "XDG_RUNTIME_DIR": str(self.run),
            "XDG_DATA_HOME": str(self.data),
            "AGENTIX_AUTOSTART": "0",
        }

    def agentix(self, *words):
        return subprocess.run(
            [self.build / "src" / "cli" / "agentix", *words],
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    def start(self):
        """Starts the daemon, which goes into the background when ready, or prints an error."""
        own_network = ["unshare", "--net"] if os.geteuid() == 0 else []
        with (self.top / "stderr").open("w+") as stderr, undisturbed():
            done = subprocess.run(
                [*own_network, self.build / "src" / "daemon" / "agentixd", "--backend", "native"],
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                preexec_fn=hear_signals,
                timeout=TIMEOUT_S,
                check=False,
            )
            stderr.seek(0)
            if done.returncode != 0:
                raise CannotRun(stderr.read().strip().removeprefix("agentixd: "))

    def mounts(self):
        """The server's libraries and interpreter, and our own files; all of them read-only."""
        seen = {Path("/usr"): Path("/usr")}
        for name in ("/bin", "/lib", "/lib64"):
            if Path(name).exists():
                seen[Path(name)] = Path(name).resolve()
        ours = (self.build, ROOT / "build", ROOT / "python", ROOT / "examples", sys.base_prefix)
        for path in map(Path, ours):
            if not any(path.is_relative_to(target) for target in seen):
                seen[path] = path
        for target, source in seen.items():
            yield from ("--mount", f"{source}:{target}")
        yield from ("--mount", f"{self.share}:{self.share}:writable")

    def create(self):
        begin = time.perf_counter()
        made = self.agentix(
            *("sandbox", "create", "--image", "scratch", "--sandbox-id", NAME),
            *(*self.mounts(), "--", *self.server()),
        )
        if made.returncode != 0:
            raise CannotRun(made.stderr.strip().splitlines()[-1].removeprefix("agentix: "))
        taken = (time.perf_counter() - begin) * 1000
        say("sandbox", f"'{NAME}' made in {taken:.1f} ms, by agentixd, without an engine")
        self.await_server()
        say("server", "agentix-server is its main process, on a Unix socket, with a Python worker")

    def delete(self):
        begin = time.perf_counter()
        gone = self.agentix("sandbox", "delete", NAME)
        if gone.returncode != 0:
            raise Failed(gone.stderr)
        say("delete", f"'{NAME}' is gone after {(time.perf_counter() - begin) * 1000:.1f} ms")

    def has_ended(self):
        found = self.agentix("sandbox", "get", NAME, "--json")
        return '"SANDBOX_STATE_READY"' not in found.stdout

    def said(self):
        """The logs of the server and of the daemon."""
        own = self.data / "agentix"
        logs = (own / "native" / "boxes" / NAME / "0" / "main.log", own / "agentixd.log")
        return "".join(log.read_text(errors="replace") for log in logs if log.exists())

    def close(self):
        """Removes whatever exists, also after a failed start."""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            self.agentix("sandbox", "delete", NAME)
        self.end_daemon()
        self.remove_groups()
        devices = self.run / "agentix" / "dev"
        if devices.is_mount():
            subprocess.run(["umount", "--lazy", devices], check=False)
        super().close()

    def end_daemon(self):
        lock = self.run / "agentix" / "agentixd.lock"
        text = lock.read_text().strip() if lock.exists() else ""
        if not text:
            return
        for signo in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(text), signo)
            if wait_for(lambda: is_gone(int(text)), seconds=20):
                return

    def remove_groups(self):
        """Removes control groups and kills the processes in them, if the daemon was killed."""
        instance = self.data / "agentix" / "instance"
        if not instance.exists():
            return
        name = f"agentix-{instance.read_text()[:8]}"
        groups = Path("/sys/fs/cgroup")
        for top in (*groups.glob(name), *groups.glob(f"*/{name}")):
            below = sorted((path.parent for path in top.rglob("cgroup.procs")), reverse=True)
            for group in below:
                for pid in re.findall(r"\d+", (group / "cgroup.procs").read_text()):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                wait_for(lambda path=group: is_removed(path), seconds=10)


def is_removed(group):
    """Tries to remove a control group, which works once its last process has ended."""
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()


class Loopback(Stage):
    """The server without a sandbox, on this machine."""

    def __init__(self, build):
        super().__init__(build)
        self.process = None

    def create(self):
        with (self.top / "log").open("w") as log, undisturbed():
            self.process = subprocess.Popen(self.server(), stderr=log, preexec_fn=hear_signals)
        self.await_server()
        say(
            "server",
            "agentix-server on a Unix socket, with a Python worker, in no sandbox; "
            f"process {self.process.pid}",
        )

    def has_ended(self):
        return self.process.poll() is not None

    def said(self):
        return (self.top / "log").read_text()

    def close(self):
        if self.process:
            self.process.terminate()
            self.process.wait(TIMEOUT_S)
        super().close()


@contextlib.contextmanager
def closing(stage):
    try:
        yield stage
    finally:
        with undisturbed():
            stage.close()


def in_sandbox(build):
    """Returns False if no sandbox can be made here; it has printed the reason then."""
    with closing(Sandbox(build)) as stage:
        try:
            stage.start()
            stage.create()
        except CannotRun as why:
            say("native", f"no sandbox: {why}")
            return False
        stage.call()
        stage.delete()
    return True


def on_loopback(build):
    with closing(Loopback(build)) as stage:
        stage.create()
        stage.call()


def interrupted(signo, frame):
    raise KeyboardInterrupt


def main():
    for signo in SIGNALS:
        signal.signal(signo, interrupted)
    build = Path(sys.argv[1]).resolve()
    try:
        if not in_sandbox(build):
            on_loopback(build)
    except (Failed, subprocess.TimeoutExpired) as failure:
        sys.exit(f"demo: {failure}")
    except KeyboardInterrupt:
        sys.exit("demo: interrupted")


main()
