"""Ping, one by one, while one reads 20,000 old events again and again: the 99.9th percentile."""

import json
import subprocess

from daemon import AT_ONCE, Ours, create_one, ghz_run, ping_p999, started
from measure import BenchError

UNIT = "us"
BAR = None
COMMANDS = 10000
# Accepted, preparing and ready; then each command's start and end.
EVENTS = 3 + 2 * COMMANDS


def setup(bench):
    free, busy = started(Ours(bench)), started(Ours(bench))
    create_one(bench, busy, "long")
    command = json.dumps({"sandbox_id": "long", "command": ["true"]})
    method = "agbox.v1.SandboxService.CreateExec"
    ghz_run(bench, busy, method, command, "-c", AT_ONCE, "-n", COMMANDS)
    words = [bench.program("bench/replay"), busy.socket, "long", EVENTS]
    # One: with more of them the figure would be about turns on two cores.
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
