"""GetSandbox by ghz, one after the other: the median."""

from daemon import create_one, ghz, percentile_us, sides

UNIT = "us"
BAR = "ratio <= 0.77"
WHICH = '{"sandbox_id":"bench"}'


def setup(bench):
    made = set()

    def measure_one(daemon, seconds):
        if daemon not in made:
            create_one(bench, daemon, "bench")
            made.add(daemon)
        return percentile_us(ghz(bench, daemon, "GetSandbox", seconds, WHICH, 1), 50)

    return sides(bench, measure_one)
