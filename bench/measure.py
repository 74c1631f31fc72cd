"""Defines figures and measures them.

A figure is a module in bench/figures/. The first line of its docstring is its title. It has

    UNIT    the unit of the value, such as "messages/s"
    BAR     the condition to reach, such as "ratio >= 10, ours <= 130", or None
    setup   setup(bench) prepares everything and returns two functions (ours, peer); peer may be
            None. Each takes a number of seconds, measures for about that long and returns a value.

The ratio is ours / peer.
"""

import operator
import pathlib
import re
import runpy
import statistics
import subprocess
import tempfile

ROUNDS, ROUND_SECONDS = 9, 0.3
QUICK_ROUNDS, QUICK_ROUND_SECONDS = 3, 0.05

# Name of a peer's environment -> its packages. Each has a version, so that ratios of today can be
# compared with ratios of next year.
PEERS = {
    "agentixx-0.1.5": ["agentixx==0.1.5"],
    "agentixx-0.2.6": ["agentixx==0.2.6"],
    "grpcio": ["grpcio==1.85.1"],
    "msgpack": ["msgpack==1.2.4"],
    "socketio": ["python-socketio==5.18.1"],
    "websockets": ["websockets==17.4"],
}

CONDITION = re.compile(r"(ours|ratio) (>=|<=) ([0-9.]+)$")
COMPARE = {">=": operator.ge, "<=": operator.le}


class BenchError(Exception):
    """A figure cannot be measured; the text gives the reason."""


def run(command):
    """Runs a command and returns its standard output as bytes; BenchError if it fails."""
    command = [str(word) for word in command]
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise BenchError(f"run '{command[0]}': {error.strerror}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        words = said[-1] if said else "said nothing"
        raise BenchError(f"'{' '.join(command)}' ended with {done.returncode}: {words}")
    return done.stdout


class Bench:
    """Gives figures our programs and the interpreters of peers."""

    def __init__(self, root, build):
        self.root, self.build, self.deferred = root, build, []

    def defer(self, function):
        """Registers a function to call after the figure, also after an error; last one first."""
        self.deferred.append(function)

    def clean_up(self):
        """Calls all registered functions, also if one of them fails."""
        try:
            while self.deferred:
                self.deferred.pop()()
        finally:
            if self.deferred:
                self.clean_up()

    def temporary_directory(self):
        """Makes a directory that exists until the figure ends, and returns its path."""
        directory = tempfile.TemporaryDirectory(prefix="agentix-bench-")
        self.defer(directory.cleanup)
        return directory.name

    def program(self, name):
        """The path of a program in the build directory."""
        path = self.build / name
        if not path.exists():
            raise BenchError(f"no '{path}': run `make bench`, or tools/build release, first")
        return path

    def peer(self, name):
        """The Python of a peer's virtual environment, which is made if it is missing."""
        home, packages = self.root / "build" / "bench" / name, PEERS[name]
        stamp, wanted = home / ".stamp", f"{home} {' '.join(packages)}"
        if not (stamp.exists() and stamp.read_text() == wanted):
            run(["/usr/bin/python3", "-m", "venv", "--clear", home])
            run([home / "bin/pip", "--disable-pip-version-check", "-q", "install", *packages])
            stamp.write_text(wanted)
        return home / "bin" / "python"


class Figure:
    def __init__(self, path):
        module = runpy.run_path(str(path))
        self.name = path.stem
        self.title = module["__doc__"].splitlines()[0]
        self.unit, self.bar, self.setup = module["UNIT"], module["BAR"], module["setup"]


def figures_in(folder):
    """Name -> path, sorted by name."""
    return {path.stem: path for path in sorted(pathlib.Path(folder).glob("*.py"))}


def reached(bar, ours, ratio):
    """Whether the values reach the bar; None if there is no bar, or no value that it names."""
    values, verdict = {"ours": ours, "ratio": ratio}, None
    for condition in bar.split(", ") if bar else []:
        found = CONDITION.match(condition)
        if not found:
            raise BenchError(f"bar '{condition}' is not of the form 'ratio >= 10'")
        if values[found[1]] is not None:
            met = COMPARE[found[2]](values[found[1]], float(found[3]))
            verdict = met and verdict is not False
    return verdict


def measure(bench, figure, quick):
    """The figure as an object for --json, and the spread of our rounds against their median."""
    try:
        return measure_sides(bench, figure, quick)
    finally:
        bench.clean_up()


def measure_sides(bench, figure, quick):
    sides = dict(zip(("ours", "peer"), figure.setup(bench), strict=True))
    values = {side: [] for side in sides}
    rounds, seconds = (QUICK_ROUNDS, QUICK_ROUND_SECONDS) if quick else (ROUNDS, ROUND_SECONDS)
    for number in range(rounds):
        # Both run in turn, and each is first in every other round, so that a machine that gets
        # slower affects both.
        for side in sorted(sides, reverse=number % 2 == 1):
            if sides[side]:
                values[side].append(sides[side](seconds))
    ours = statistics.median(values["ours"])
    peer = statistics.median(values["peer"]) if values["peer"] else None
    ratio = ours / peer if peer else None
    spread = (max(values["ours"]) - min(values["ours"])) / ours if ours else 0
    result = {"figure": figure.name, "ours": ours, "peer": peer, "unit": figure.unit}
    result |= {"ratio": ratio, "bar": figure.bar, "ok": reached(figure.bar, ours, ratio)}
    return result, spread
