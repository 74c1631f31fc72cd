"""Delete of a READY sandbox, p99; peer: docker rm -f."""

from docker import pair

UNIT = "ms"
BAR = None


def setup(bench):
    return pair(bench, 99, (10, 2), what="delete")
