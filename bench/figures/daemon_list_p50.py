"""ListSandboxes with 1,000 sandboxes by ghz, 8 at a time: the median."""

from daemon import create, ghz, percentile_us, sides

UNIT = "us"
BAR = None


def setup(bench):
    made = set()

    def measure_one(daemon, seconds):
        if daemon not in made:
            create(bench, daemon, 1000)
            made.add(daemon)
        report = ghz(bench, daemon, "ListSandboxes", seconds, at_once=8)
        return percentile_us(report, 50)

    return sides(bench, measure_one)
