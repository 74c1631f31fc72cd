"""Create to READY with network, p99; peer: docker run -d."""

from native import pair

UNIT = "ms"
BAR = None


def setup(bench):
    return pair(bench, 99, (100, 5), (5, 1), what="create")
