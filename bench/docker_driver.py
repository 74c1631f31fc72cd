"""usage: docker_driver.py BUILD IMAGE

Runs beside a Docker Engine (tests/support/docker_box.py) and answers questions: each line of
standard input is a question, a JSON object, and gets one line on standard output as its answer.

    {"side": "ours", "what": "create", "count": 3, "at_once": 1}    {"value": [412.1, 398.7, ...]}

Values are milliseconds. The sides are `ours`; `ready`, which is ours with networks prepared in
advance; `agbox`, the daemon that AGBOXD names; and `docker`, the docker command. `alive` sandboxes
stay until the driver ends, and `exec` uses them in turn.
"""

import itertools
import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests/support/py")]

import grpc  # noqa: E402 (the path comes first)
from agxtest import agbox  # noqa: E402
from agxtest.protos import agbox as api  # noqa: E402
from daemon import Daemon, Ours, Peer  # noqa: E402
from measure import Bench, BenchError, run  # noqa: E402

WAIT_SECONDS = 120
DOCKER = "/usr/bin/docker"
# A main process that ends at once on TERM.
IDLE = ["sh", "-c", "trap 'exit 0' TERM; sleep 1000000 & wait"]
numbers = itertools.count(1)


def timed(function, name):
    """The milliseconds of a call, from its start, or from the moment that it returns."""
    began = time.monotonic()
    counts_from = function(name)
    return (time.monotonic() - (counts_from or began)) * 1e3


class Command:
    """The docker command. A sandbox is a container on the engine's default network."""

    def __init__(self, image):
        self.image = image

    def create(self, name):
        run([DOCKER, "run", "-d", "--name", name, self.image, *IDLE])

    def stop(self, name):
        run([DOCKER, "stop", "-t", "5", name])

    def delete(self, name):
        run([DOCKER, "rm", "-f", name])

    def exec(self, name):
        run([DOCKER, "exec", name, "/bin/true"])


class Watched:
    """A sandbox and the stream of its events."""

    def __init__(self, client, name):
        self.name, self.client = name, client
        self.ended = {}
        self.stream = client.follow(name, seconds=None)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        ends = (api().EXEC_FINISHED, api().EXEC_FAILED, api().EXEC_CANCELLED)
        try:
            for event in self.stream:
                if event.event_type in ends:
                    self.end_of(event.exec.exec_id).put(event.exec.exit_code)
        except grpc.RpcError:
            return  # the sandbox is gone

    def end_of(self, exec_id):
        return self.ended.setdefault(exec_id, queue.Queue())

    def exec(self):
        """Runs /bin/true to its end and returns the moment when the command was accepted."""
        exec_id = f"exec-{next(numbers)}"
        end = self.end_of(exec_id)
        self.client.start(self.name, "/bin/true", exec_id=exec_id)
        accepted = time.monotonic()
        code = end.get(timeout=WAIT_SECONDS)
        del self.ended[exec_id]
        if code != 0:
            raise BenchError(f"/bin/true ended with {code}")
        return accepted


class Service:
    """A daemon that speaks agbox.v1."""

    def __init__(self, daemon, image):
        daemon.start()
        self.daemon, self.image = daemon, image
        self.client = agbox.Client(grpc.insecure_channel(f"unix://{daemon.socket}"))
        self.watched = {}

    def until(self, name, wanted):
        bad = api().SANDBOX_FAILED
        for event in self.client.follow(name, seconds=WAIT_SECONDS):
            if event.event_type == wanted:
                return
            if event.event_type == bad:
                raise BenchError(f"sandbox '{name}' failed: {event.sandbox_phase.error_message}")
        raise BenchError(f"sandbox '{name}': its events ended")

    def create(self, name):
        self.client.create(name, image=self.image)
        self.until(name, api().SANDBOX_READY)

    def stop(self, name):
        self.client.box.StopSandbox(sandbox_id=name)
        self.until(name, api().SANDBOX_STOPPED)

    def delete(self, name):
        self.watched.pop(name, None)
        self.client.box.DeleteSandbox(sandbox_id=name)
        self.until(name, api().SANDBOX_DELETED)

    def watch(self, name):
        self.watched[name] = Watched(self.client, name)
        self.exec(name)  # the first exec opens connections that later ones use

    def exec(self, name):
        return self.watched[name].exec()


class DockerDaemon(Daemon):
    """Our daemon, on the engine of the box."""

    def __init__(self, bench, config=""):
        options = ["--foreground", "--backend", "docker"]
        config = Ours.CONFIG + config
        super().__init__(bench, bench.program("src/daemon/agentixd"), options, config)
        self.socket = self.home / "run/agentix/agentixd.sock"
        bench.defer(self.kill)


class Side:
    """Measures one side."""

    def __init__(self, target):
        self.target, self.alive = target, []

    def names(self, count):
        return [f"bench-{os.getpid()}-{next(numbers)}" for _ in range(count)]

    def each(self, verb, names, at_once):
        """The milliseconds of each call."""
        function = getattr(self.target, verb)
        with ThreadPoolExecutor(at_once) as pool:
            return list(pool.map(lambda name: timed(function, name), names))

    def keep(self, count):
        """Makes sandboxes until `count` exist, to run commands in."""
        made = self.names(count - len(self.alive))
        self.each("create", made, min(8, max(1, len(made))))
        for name in made:
            if isinstance(self.target, Service):
                self.target.watch(name)
        self.alive += made
        return self.alive

    def exec(self, count, at_once, alive):
        places = itertools.cycle(self.keep(alive))
        return self.each("exec", [next(places) for _ in range(count)], at_once)

    def life(self, what, count, at_once, alive):
        """Creates, stops if asked to, and deletes `count` sandboxes."""
        self.keep(alive)
        names = self.names(count)
        took = {"create": self.each("create", names, at_once)}
        if what == "stop":
            took["stop"] = self.each("stop", names, at_once)
        took["delete"] = self.each("delete", names, at_once)
        return took[what]

    def measure(self, what, count, at_once=1, alive=0):
        if what == "exec":
            return self.exec(count, at_once, max(alive, at_once))
        if what == "memory":
            self.keep(alive)
            return self.target.daemon.memory("RssAnon")
        return self.life(what, count, at_once, alive)


def make(bench, name, image):
    if name == "docker":
        return Side(Command(image))
    if name == "agbox":
        return Side(Service(Peer(bench, os.environ["AGBOXD"]), image))
    config = "docker: { networks_ready: 4 }\n" if name == "ready" else ""
    return Side(Service(DockerDaemon(bench, config), image))


def serve(make_side):
    """Answers questions; calls make_side(name) at the first question to a side."""
    sides = {}
    for line in sys.stdin:
        question = json.loads(line)
        name = question.pop("side")
        try:
            if name not in sides:
                sides[name] = make_side(name)
            answer = {"value": sides[name].measure(**question)}
        except (BenchError, grpc.RpcError, subprocess.SubprocessError, queue.Empty) as error:
            answer = {"error": f"{name}: {type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def main():
    bench = Bench(ROOT, pathlib.Path(sys.argv[1]))
    try:
        serve(lambda name: make(bench, name, sys.argv[2]))
    finally:
        bench.clean_up()


if __name__ == "__main__":
    main()
