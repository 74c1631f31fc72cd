"""Create to READY, p99; peer: docker run -d."""

from docker import pair

UNIT = "ms"
BAR = None


def setup(bench):
    return pair(bench, 99, (10, 2), what="create")
