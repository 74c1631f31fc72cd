"""Create to READY, 16 at a time, p50; peer: docker run -d."""

from native import pair

UNIT = "ms"
BAR = None


def setup(bench):
    return pair(bench, 50, (64, 16), (16, 16), what="create", at_once=16)
