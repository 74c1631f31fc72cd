"""Create to READY, 16 at a time, p99; peer: docker run -d."""

from docker import pair

UNIT = "ms"
BAR = None


def setup(bench):
    return pair(bench, 99, (16, 16), what="create", at_once=16)
