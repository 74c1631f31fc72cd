"""Ping, one by one, while the creates of 1,000 sandboxes hang: the 99.9th percentile."""

from measure import run

from daemon import Ours, create, started

UNIT = "us"
BAR = None


def setup(bench):
    free, stuck = started(Ours(bench)), started(Ours(bench))
    stuck.script("create * hang")
    create(bench, stuck, 1000)

    def measure_one(daemon, seconds):
        load = [bench.program("bench/rpc_load"), daemon.socket, "/agbox.v1.SandboxService/Ping"]
        return float(run([*load, seconds, 1]).split()[3])

    return (
        lambda seconds: measure_one(stuck, seconds),
        lambda seconds: measure_one(free, seconds),
    )
