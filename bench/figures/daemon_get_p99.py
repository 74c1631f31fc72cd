"""GetSandbox by ghz, 64 at a time: the 99th percentile."""

from daemon import create_one, ghz, percentile_us, sides

UNIT = "us"
BAR = None
WHICH = '{"sandbox_id":"bench"}'


def setup(bench):
    made = set()

    def measure_one(daemon, seconds):
        if daemon not in made:
            create_one(bench, daemon, "bench")
            made.add(daemon)
        return percentile_us(ghz(bench, daemon, "GetSandbox", seconds, WHICH), 99)

    return sides(bench, measure_one)
