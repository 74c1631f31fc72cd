"""Create to READY with network, p50; peer: docker run -d."""

from native import pair

UNIT = "ms"
BAR = "ours <= 10, ratio <= 0.05"


def setup(bench):
    return pair(bench, 50, (30, 3), (3, 1), what="create")
