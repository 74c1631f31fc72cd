"""Ping, one by one, while a subscriber repeatedly reads 20,000 old events: 99.9th percentile."""

import json
import subprocess

from daemon import AT_ONCE, Ours, create_one, ghz_run, ping_p999, started
from measure import BenchError

UNIT = "us"
BAR = None
COMMANDS = 10000
# The events accepted, preparing and ready, then the start and end of each command.
EVENTS = 3 + 2 * COMMANDS


def setup(bench):
    free, busy = started(Ours(bench)), started(Ours(bench))
    create_one(bench, busy, "long")
    command = json.dumps({"sandbox_id": "long", "command": ["true"]})
    method = "agbox.v1.SandboxService.CreateExec"
    ghz_run(bench, busy, method, command, "-c", AT_ONCE, "-n", COMMANDS)
    words = [bench.program("bench/replay"), busy.socket, "long", EVENTS]
    # One subscriber: with more of them the figure would measure the sharing of two cores.
    reader = subprocess.Popen(
        [str(word) for word in words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    bench.defer(reader.wait)
    bench.defer(reader.kill)
    if reader.stdout.readline() != "ready\n":
        raise BenchError("the reader did not get to the end of the history")
    return (
        lambda seconds: ping_p999(bench, busy, seconds),
        lambda seconds: ping_p999(bench, free, seconds),
    )
