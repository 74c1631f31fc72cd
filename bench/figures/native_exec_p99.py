"""/bin/true, accepted to terminal event, p99; peer: docker exec."""

from native import pair

UNIT = "ms"
BAR = None


def setup(bench):
    return pair(bench, 99, (200, 20), (10, 2), what="exec")
