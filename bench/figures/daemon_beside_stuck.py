"""Ping, one by one, while the creates of 1,000 sandboxes hang: the 99.9th percentile."""

from daemon import Ours, create, ping_p999, started

UNIT = "us"
BAR = None


def setup(bench):
    free, stuck = started(Ours(bench)), started(Ours(bench))
    stuck.script("create * hang")
    create(bench, stuck, 1000)

    return (
        lambda seconds: ping_p999(bench, stuck, seconds),
        lambda seconds: ping_p999(bench, free, seconds),
    )
