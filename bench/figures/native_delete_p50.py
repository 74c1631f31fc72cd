"""Delete of a READY sandbox, p50; peer: docker rm -f."""

from native import pair

UNIT = "ms"
BAR = None


def setup(bench):
    return pair(bench, 50, (30, 3), (3, 1), what="delete")
