"""Ping of the daemon by ghz, 64 at a time."""

from daemon import ghz, rate, sides

UNIT = "requests/s"
BAR = "ratio >= 1.3"


def setup(bench):
    return sides(bench, lambda daemon, seconds: rate(ghz(bench, daemon, "Ping", seconds)))
