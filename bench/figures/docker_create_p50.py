"""Create to READY, p50; peer: docker run -d."""

from docker import pair

UNIT = "ms"
BAR = "ours <= 417"


def setup(bench):
    return pair(bench, 50, (3, 1), what="create")
