"""Delete of a READY sandbox, p50; peer: docker rm -f."""

from docker import pair

UNIT = "ms"
BAR = None


def setup(bench):
    return pair(bench, 50, (3, 1), what="delete")
