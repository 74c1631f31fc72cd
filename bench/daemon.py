"""Shared by the daemon's figures: agentixd with the fake backend, and ghz as a neutral client.

If AGBOXD names the program of agents-sandbox's daemon, it is measured beside ours; it needs a
Docker Engine. Otherwise the figure has no peer.
"""

import functools
import json
import os
import pathlib
import socket
import subprocess
import time

from measure import BenchError, run

AT_ONCE = 64
# ghz needs a moment to reach its speed, and counts its first calls too.
LEAST_SECONDS = 1.0
START_SECONDS = 60
SANDBOX = '{"create_spec":{"image":"scratch","labels":{"of":"bench"}}'


class Daemon:
    """A daemon with its own directories, which are removed after the figure."""

    def __init__(self, bench, program, options=(), config=None):
        self.bench, self.home = bench, pathlib.Path(bench.temporary_directory())
        self.command = [program, *options]
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("AGENTIX_", "XDG_"))}
        for name, folder in (
            ("XDG_RUNTIME_DIR", "run"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_CONFIG_HOME", "config"),
            ("HOME", "home"),
        ):
            (self.home / folder).mkdir(mode=0o700)
            self.env[name] = str(self.home / folder)
        if config:
            (self.home / "config/agentix").mkdir()
            (self.home / "config/agentix/config.yaml").write_text(config)
        self.process = None

    def start(self):
        """Starts the daemon; returns the seconds until it accepted a connection."""
        log = (self.home / "log").open("ab")
        began = time.monotonic()
        self.process = subprocess.Popen(
            [str(word) for word in self.command],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        log.close()
        while not self.connects():
            if self.process.poll() is not None or time.monotonic() - began > START_SECONDS:
                raise BenchError(f"'{self.command[0]}' does not serve: {self.last_words()}")
            time.sleep(0.001)
        return time.monotonic() - began

    def connects(self):
        with socket.socket(socket.AF_UNIX) as s:
            try:
                s.connect(str(self.socket))
            except OSError:
                return False
        return True

    def last_words(self):
        said = (self.home / "log").read_text(errors="replace").strip().splitlines()
        return said[-1] if said else "it said nothing"

    def kill(self):
        """Ends the daemon as a crash would."""
        if self.process:
            self.process.kill()
            self.process.wait()

    def memory(self, key):
        """The value of a key in /proc/PID/status, in bytes."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
        raise BenchError(f"no {key} of process {self.process.pid}")

    def cpu_seconds(self):
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        words = stat.rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Ours(Daemon):
    # No limits that a figure would reach, and no sandbox that stops by itself.
    CONFIG = """\
limits: { sandboxes_per_uid: 0, execs_per_uid: 0, subscribers_per_uid: 0 }
sandbox: { idle_ttl: 0 }
log: { level: warn }
"""

    def __init__(self, bench, config=""):
        world = bench.temporary_directory()
        options = ["--foreground", "--backend", f"fake:{world}"]
        self.fake = bench.program("tests/fake/agentix-fakeworld")
        super().__init__(bench, bench.program("tests/fake/agentixd"), options, self.CONFIG + config)
        self.world = world
        self.socket = self.home / "run/agentix/agentixd.sock"
        bench.defer(self.end)
        env = os.environ | {"AGENTIX_FAKE_PARENT": str(os.getpid())}
        subprocess.run([self.fake, "--start", world], env=env, check=True)

    def end(self):
        self.kill()
        subprocess.run([self.fake, "--stop", self.world], check=False, capture_output=True)

    def script(self, rule):
        run([self.fake, "--script", self.world, rule])


class Peer(Daemon):
    def __init__(self, bench, program):
        super().__init__(bench, program)
        self.socket = self.home / "run/agbox/agboxd.sock"
        bench.defer(self.kill)


def started(daemon):
    daemon.start()
    return daemon


def peer_daemon(bench):
    """The peer's daemon, started, or None."""
    program = os.environ.get("AGBOXD")
    return started(Peer(bench, program)) if program else None


@functools.cache
def tools(root, build):
    """The paths of ghz and of the descriptors of our services."""
    home = run([root / "tools/peer_env", "ghz"]).decode().strip()
    return pathlib.Path(home, "bin/ghz"), build / "src/wire/api_descriptor_set.pb"


def ghz_run(bench, daemon, method, data, *options):
    """Runs ghz once and returns its report. `method` includes its service and package."""
    program, descriptors = tools(bench.root, bench.build)
    command = [program, "--insecure", "--protoset", descriptors, "--call", method, "-d", data]
    report = json.loads(run([*command, *options, "-O", "json", f"unix://{daemon.socket}"]))
    wrong = {k: v for k, v in report.get("statusCodeDistribution", {}).items() if k != "OK"}
    if wrong:
        raise BenchError(f"{method}: answers that are not OK: {wrong}")
    return report


def ghz(bench, daemon, method, seconds, data="{}", at_once=AT_ONCE):
    """Calls a method of agbox.v1 for some seconds."""
    options = ["-c", at_once, "--connections", min(at_once, 8)]
    # A call that is still running at the end of the run does not count as a failure.
    options += ["-z", f"{max(seconds, LEAST_SECONDS)}s", "--duration-stop", "wait"]
    return ghz_run(bench, daemon, f"agbox.v1.SandboxService.{method}", data, *options)


def rate(report):
    return report["count"] / (report["total"] / 1e9)


def percentile_us(report, percent):
    for entry in report["latencyDistribution"]:
        if entry["percentage"] == percent:
            return entry["latency"] / 1e3
    raise BenchError(f"ghz gave no p{percent}")


def ping_p999(bench, daemon, seconds):
    """The 99.9th percentile of Pings, one after the other."""
    load = [bench.program("bench/rpc_load"), daemon.socket, "/agbox.v1.SandboxService/Ping"]
    return float(run([*load, seconds, 1]).split()[3])


def create(bench, daemon, count):
    """Makes sandboxes, and returns when the daemon has accepted them."""
    method = "agbox.v1.SandboxService.CreateSandbox"
    ghz_run(bench, daemon, method, SANDBOX + "}", "-c", AT_ONCE, "-n", count)


def create_one(bench, daemon, name):
    """Makes a sandbox with this name; its history has three events."""
    which = json.dumps({"sandbox_id": name})
    data, once = f'{SANDBOX},"sandbox_id":"{name}"' + "}", ("-c", 1, "-n", 1)
    ghz_run(bench, daemon, "agbox.v1.SandboxService.CreateSandbox", data, *once)
    ghz_run(bench, daemon, "agentix.v1.ControlService.WaitSandbox", which, *once)


def sides(bench, measure_one):
    """(ours, peer) of a function that measures one daemon for some seconds."""
    ours, peer = started(Ours(bench)), peer_daemon(bench)
    return tuple(
        daemon and (lambda seconds, daemon=daemon: measure_one(daemon, seconds))
        for daemon in (ours, peer)
    )


def durable(bench, seconds, at_once, config=""):
    """CreateSandbox per second, with an empty store. The backend never finishes a create, so the
    figure measures only validating, storing and answering."""
    daemon = Ours(bench, config)
    try:
        daemon.start()
        daemon.script("create * hang")
        return rate(ghz(bench, daemon, "CreateSandbox", seconds, SANDBOX + "}", at_once))
    finally:
        daemon.end()


def durable_pair(bench, at_once):
    off = "store: { grouping: false }\n"
    return (
        lambda seconds: durable(bench, seconds, at_once),
        lambda seconds: durable(bench, seconds, at_once, off),
    )


class Idle:
    """A daemon with many subscribers and no events."""

    def __init__(self, bench, subscribers):
        self.daemon = started(Ours(bench))
        create_one(bench, self.daemon, "idle")
        self.before = self.daemon.memory("RssAnon")
        words = [bench.program("bench/subscribers"), self.daemon.socket, "idle", subscribers, 0]
        self.crowd = subprocess.Popen(
            [str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        bench.defer(self.end)
        if self.crowd.stdout.readline() != "ready\n":
            raise BenchError("the subscribers did not come up")

    def end(self):
        self.crowd.stdin.close()
        self.crowd.wait()
