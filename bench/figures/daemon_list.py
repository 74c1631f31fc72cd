"""ListSandboxes with 1,000 sandboxes by ghz, 8 at a time."""

from daemon import create, ghz, rate, sides

UNIT = "requests/s"
BAR = "ratio >= 1.3"


def setup(bench):
    made = set()

    def measure_one(daemon, seconds):
        if daemon not in made:
            create(bench, daemon, 1000)
            made.add(daemon)
        report = ghz(bench, daemon, "ListSandboxes", seconds, at_once=8)
        return rate(report)

    return sides(bench, measure_one)
