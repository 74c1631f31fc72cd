"""Anonymous memory (RssAnon) of the daemon with 1,000 sandboxes."""

from daemon import create, sides

UNIT = "MiB"
BAR = "ours <= 24"


def setup(bench):
    made = set()

    def measure_one(daemon, _):
        if daemon not in made:
            create(bench, daemon, 1000)
            made.add(daemon)
        return daemon.memory("RssAnon") / 1048576

    return sides(bench, measure_one)
