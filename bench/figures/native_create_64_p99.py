"""Create to READY, 64 at a time, p99; peer: docker run -d."""

from native import pair

UNIT = "ms"
BAR = None


def setup(bench):
    return pair(bench, 99, (128, 64), (64, 64), what="create", at_once=64)
