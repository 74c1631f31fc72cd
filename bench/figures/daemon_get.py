"""GetSandbox by ghz, 64 at a time."""

from daemon import create_one, ghz, rate, sides

UNIT = "requests/s"
BAR = "ratio >= 1.3"
WHICH = '{"sandbox_id":"bench"}'


def setup(bench):
    made = set()

    def measure_one(daemon, seconds):
        if daemon not in made:
            create_one(bench, daemon, "bench")
            made.add(daemon)
        return rate(ghz(bench, daemon, "GetSandbox", seconds, WHICH))

    return sides(bench, measure_one)
