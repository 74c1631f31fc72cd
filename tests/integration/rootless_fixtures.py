"""For tests of an ordinary user's daemon.

The user exists only for the test: /etc/passwd, /etc/subuid and /etc/subgid are files of the test in
its box. The programs are copied to a directory that this user can access.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from agxtest import daemon, images
from agxtest.cli import DaemonCli
from agxtest.server import wait_for

IMAGE = "agx-busybox:1"
USER = 4321
SUB = 500000
SUBS = range(SUB, SUB + 65536)
AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--inh-caps=-all"]


def build_of(*names):
    return Path(os.environ["AGENTIXD"]).parent.parent.joinpath(*names)


@contextlib.contextmanager
def mounted(source, target):
    subprocess.run(["mount", "--bind", source, target], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", target], check=True)


class RootlessPlace(daemon.NativePlace):
    programs = None

    def command(self, *options):
        return [*AS_USER, *super().command(*options, program=self.programs / "agentixd")]

    def give(self):
        for each in (self.run_home, self.data_home, self.config_home, self.home):
            each.mkdir(parents=True, exist_ok=True)
            os.chown(each, USER, USER)
        self.run_home.chmod(0o700)


class RootlessDaemon(daemon.NativeDaemon):
    def make_place(self, directory):
        return RootlessPlace(directory)

    def make_world(self):
        self.place.give()
        return super().make_world()


@pytest.fixture(name="top", scope="module")
def fixture_top():
    """Makes the user, and a directory with the programs that the user can access."""
    with contextlib.ExitStack() as stack:
        top = Path(tempfile.mkdtemp(prefix="agxr"))
        stack.callback(shutil.rmtree, top)
        top.chmod(0o755)
        RootlessPlace.programs = top / "bin"
        RootlessPlace.programs.mkdir()
        for path in (
            Path(os.environ["AGENTIXD"]),
            Path(os.environ["AGENTIX"]),
            build_of("init", "agentix-init"),
            build_of("image", "agentix-unpack"),
            build_of("forward", "agentix-forward"),
        ):
            shutil.copy(path, RootlessPlace.programs)
        (top / "busybox.tar").write_bytes(images.archive("busybox"))
        line = f"tester:x:{USER}:{USER}::/:/bin/sh\n"
        (top / "passwd").write_text(Path("/etc/passwd").read_text() + line)
        for name in ("subuid", "subgid"):
            (top / name).write_text(f"tester:{SUB}:{len(SUBS)}\n")
        for name in ("passwd", "subuid", "subgid"):
            Path("/etc", name).touch()
            stack.enter_context(mounted(top / name, f"/etc/{name}"))
        yield top


class Stage(DaemonCli):
    """The daemon, and `agentix` with it."""

    def __init__(self, top, directory):
        self.daemon = RootlessDaemon(directory)
        self.native = self.daemon.place.data / "native"
        self.ok("image", "import", top / "busybox.tar")

    def command(self):
        return [*AS_USER, RootlessPlace.programs / "agentix"]

    def create(self, name, *options):
        self.ok(*self.creating(name), *options)

    def creating(self, name, network="none"):
        words = ["sandbox", "create", "--image", IMAGE, "--sandbox-id", name]
        return [*words, "--network", network] if network else words

    def shell(self, name, script):
        return self.ok("exec", "run", name, "--", "sh", "-c", script)

    def refuses(self, field, *words):
        done = self.run(*words)
        assert done.returncode == 1
        assert field in done.stderr


@contextlib.contextmanager
def staged(top):
    """A stage for one test. The daemon sees only mounts that were made before its start."""
    directory = Path(tempfile.mkdtemp(prefix="d", dir=top))
    directory.chmod(0o755)
    stage = Stage(top, directory)
    yield stage
    stage.daemon.close()
    try:
        wait_for(lambda: not processes(), "nothing of the user runs")
    finally:
        # Processes of a failed test must not make the next one fail.
        for pid, _ in processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


@pytest.fixture(name="stage")
def fixture_stage(top):
    with staged(top) as stage:
        yield stage


def processes():
    """The processes of the user and of the ids in the user's subordinate range."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            lines = (each / "status").read_text().splitlines()
            fields = dict(line.split(":", 1) for line in lines)
            uid = int(fields["Uid"].split()[0])
            if (uid == USER or uid in SUBS) and "Z" not in fields["State"]:
                found.append((each.name, fields["Name"].strip()))
    return found
