"""Create to READY, p50; peer: agents-sandbox."""

from docker import agbox_pair

UNIT = "ms"
BAR = "ratio <= 0.87"


def setup(bench):
    return agbox_pair(bench, (3, 1), what="create")
