"""Ping of the daemon by ghz, 64 at a time: the 99th percentile."""

from daemon import ghz, percentile_us, sides

UNIT = "us"
BAR = None


def setup(bench):
    def measure_one(daemon, seconds):
        return percentile_us(ghz(bench, daemon, "Ping", seconds), 99)

    return sides(bench, measure_one)
