"""Ping of the daemon by ghz, one after the other: the median."""

from daemon import ghz, percentile_us, sides

UNIT = "us"
BAR = "ratio <= 0.77"


def setup(bench):
    def measure_one(daemon, seconds):
        return percentile_us(ghz(bench, daemon, "Ping", seconds, at_once=1), 50)

    return sides(bench, measure_one)
