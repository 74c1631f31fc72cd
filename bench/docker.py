"""Shared by the figures of the Docker backend: a separate Docker Engine in its own namespaces, and
bench/docker_driver.py beside it, which starts the daemon and measures both sides.

The peer is the docker command on the same engine. In figures `docker_*_agbox` the peer is the
daemon of agents-sandbox, if AGBOXD names its program; otherwise the figure has no peer.
"""

import json
import os
import subprocess

from measure import BenchError

# A round of measure.py with at least this length is a full round.
FULL_SECONDS = 0.2


class Box:
    """The driver and its engine, which end with the figure."""

    def __init__(self, bench, image, driver="docker_driver.py"):
        python = bench.root / "build/venv/bin/python"
        box = bench.root / "tests/support/docker_box.py"
        if not python.exists():
            raise BenchError("no 'build/venv': run tools/bootstrap first")
        bench.program("src/daemon/agentixd")
        command = [
            python,
            box,
            "--image",
            image,
            bench.root / "bench" / driver,
            bench.build,
            f"agx-{image}:1",
        ]
        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        bench.defer(self.end)

    def end(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            raise BenchError(f"the driver ended with {self.process.returncode}")

    def ask(self, **question):
        """Sends one question and returns its answer; each is one line."""
        try:
            print(json.dumps(question), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            raise BenchError("the driver has ended") from None
        line = self.process.stdout.readline()
        if not line.startswith("{"):
            raise BenchError(line.removeprefix("1..0 # SKIP ").strip() or "the driver has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise BenchError(answer["error"])
        return answer["value"]


def percentile(values, percent):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def side(box, name, percent, counts, **question):
    """A side that returns a percentile of its round, in ms. `counts` has the number of samples of a
    full round and of a short one."""

    def measure_one(seconds):
        count = counts[0] if seconds >= FULL_SECONDS else counts[1]
        return percentile(box.ask(side=name, count=count, **question), percent)

    return measure_one


def pair(bench, percent, counts, peer_counts=None, ours="ours", **question):
    """Ours beside the docker command."""
    box = Box(bench, "busybox")
    return (
        side(box, ours, percent, counts, **question),
        side(box, "docker", percent, peer_counts or counts, **question),
    )


def agbox_pair(bench, counts, **question):
    """Medians of ours and of agents-sandbox's daemon, on an image that its sandboxes can run."""
    box = Box(bench, "agbox")
    ours = side(box, "ours", 50, counts, **question)
    return ours, os.environ.get("AGBOXD") and side(box, "agbox", 50, counts, **question)
