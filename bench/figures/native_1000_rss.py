"""Anonymous memory (RssAnon) of the daemon with 1,000 sandboxes."""

from native import alone

UNIT = "MiB"
BAR = "ours <= 24"


def setup(bench):
    return alone(bench, "memory", 1000, 1 / 1048576)
