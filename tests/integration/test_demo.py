"""`make demo`: its output on a machine without Docker. It must leave nothing behind.

Runs in a box (docker_box.py --no-engine), where all processes, mounts and links are the demo's.
"""

import contextlib
import fcntl
import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from agxtest.server import children, wait_for

ROOT = Path(__file__).resolve().parents[2]
DEMO = [str(ROOT / "tools" / "demo"), os.environ["AGENTIX_BUILD"]]
TIMEOUT_S = 120
pytestmark = pytest.mark.deadline(180)
PIPE_BYTES = 4096

CALLS = ["connect", "unary", "stream", "bidi", "error", "speed"]


def said_by(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Machine:
    """The state of the machine; the demo's own files are below `tmp`."""

    def __init__(self, tmp):
        self.tmp = tmp
        self.instances = set()
        self.before = self.state()

    def state(self):
        return {
            "processes": sorted(int(p.name) for p in Path("/proc").glob("[0-9]*")),
            "mounts": Path("/proc/self/mountinfo").read_text(),
            "links": said_by("ip", "-o", "link"),
            "rules": said_by("nft", "list", "tables"),
            "forwarding": Path("/proc/sys/net/ipv4/ip_forward").read_text(),
            "files": sorted(self.tmp.rglob("*")),
        }

    def note_instance(self):
        """Notes the daemon's instance as soon as it has one: its control groups are named after
        it."""
        for each in self.tmp.glob("*/data/agentix/instance"):
            with contextlib.suppress(OSError):
                self.instances.add(each.read_text()[:8])
        self.instances.discard("")
        return bool(self.instances)

    def groups(self):
        top = Path("/sys/fs/cgroup")
        names = [f"agentix-{instance}" for instance in self.instances]
        return [path for n in names for path in (*top.glob(n), *top.glob(f"*/{n}"))]

    def is_as_before(self):
        # A process that has just ended may not be reaped yet.
        wait_for(lambda: self.state() == self.before, "the machine is as before")
        assert not self.groups()


@pytest.fixture(name="machine")
def fixture_machine():
    # The path must be short enough for a socket.
    with tempfile.TemporaryDirectory(prefix="agxdemo") as tmp:
        yield Machine(Path(tmp))


def start(machine, *prefix, **popen):
    return subprocess.Popen(
        [*prefix, *DEMO],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(machine.tmp)},
        **popen,
    )


def run(machine, *prefix):
    """Runs the demo and returns its lines by their first words."""
    with start(machine, *prefix, stdout=subprocess.PIPE) as process:
        while process.poll() is None:
            machine.note_instance()
            time.sleep(0.005)
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err
    return dict(line.split(None, 1) for line in out.splitlines())


def check_calls(lines):
    assert lines["unary"] == "longest(['a', 'bundle', 'of']) -> 'bundle'"
    assert lines["stream"].endswith("-> ['a', 'g', 'e', 'n', 't', 'i', 'x']")
    assert lines["bidi"].endswith("-> ['HELLO!', 'AGAIN!']")
    assert lines["error"] == "words::broken: ValueError: this function fails on purpose"
    assert re.fullmatch(r"1000 calls one after another, \d+ us each", lines["speed"])


def test_it_calls_into_a_sandbox_twice_and_leaves_nothing(machine):
    for _ in range(2):
        lines = run(machine)
        assert list(lines) == ["sandbox", "server", *CALLS, "delete"], lines
        assert re.fullmatch(
            r"'demo' made in [\d.]+ ms, by agentixd, without an engine", lines["sandbox"]
        )
        assert re.search(r"from process \d+ on 'demo' \(we are \d+ on '", lines["connect"])
        assert re.fullmatch(r"'demo' is gone after [\d.]+ ms", lines["delete"])
        check_calls(lines)
        machine.is_as_before()


# A process in a chroot may not make a user namespace.
CHROOT = 'mount --rbind / "$0" && exec chroot "$0" "$@"'


@pytest.mark.parametrize("where", ["without the right to make rules", "in a chroot"])
def test_where_there_can_be_no_sandbox_it_says_why_and_calls_all_the_same(machine, where, tmp_path):
    if where == "in a chroot":
        root = tmp_path / "root"
        root.mkdir()
        prefix = ["unshare", "--mount", "sh", "-c", CHROOT, str(root)]
        why = "Operation not permitted"
    else:
        prefix = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"]
        why = "CAP_NET_ADMIN"
    lines = run(machine, *prefix)
    assert list(lines) == ["native", "server", *CALLS], lines
    assert lines["native"].startswith("no sandbox: ") and why in lines["native"]
    server = re.search(r"in no sandbox; process (\d+)$", lines["server"])[1]
    worker, client = re.search(r"process (\d+) on .*we are (\d+) on", lines["connect"]).groups()
    assert len({server, worker, client}) == 3, "three processes took part"
    check_calls(lines)
    machine.is_as_before()


@contextlib.contextmanager
def held(machine):
    """A demo that cannot print its first line, so it waits while it has a sandbox."""
    ours, theirs = os.pipe()
    fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    os.write(theirs, b"x" * PIPE_BYTES)
    with start(machine, stdout=theirs, start_new_session=True) as process:
        os.close(theirs)
        with open(ours, "rb") as said:
            try:
                wait_for(lambda: list(machine.tmp.glob("*/share/rt.sock")), "the server serves")
                wait_for(lambda: not children(process.pid), "and the sandbox is ready")
                assert machine.note_instance() and machine.groups()
                yield process
                # Now it may print everything; read until all its processes have ended.
                process.said = said.read()[PIPE_BYTES:].decode()
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()
        process.err = process.stderr.read()
        process.wait(TIMEOUT_S)


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM])
def test_one_that_is_interrupted_leaves_nothing(machine, signo):
    with held(machine) as process:
        os.killpg(process.pid, signo)
    assert (process.returncode, process.err) == (1, "demo: interrupted\n")
    machine.is_as_before()


def test_one_whose_daemon_is_killed_says_so_and_leaves_nothing(machine):
    with held(machine) as process:
        lock = next(machine.tmp.glob("*/run/agentix/agentixd.lock"))
        os.kill(int(lock.read_text()), signal.SIGKILL)
    assert process.returncode == 1 and process.err.startswith("demo: ")
    assert "unary" in process.said, "the sandbox does not need its daemon"
    machine.is_as_before()
