"""Delete of a READY sandbox, 16 at a time, p99; peer: docker rm -f."""

from docker import pair

UNIT = "ms"
BAR = None


def setup(bench):
    return pair(bench, 99, (16, 16), what="delete", at_once=16)
