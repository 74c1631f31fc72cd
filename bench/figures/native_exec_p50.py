"""/bin/true, accepted to terminal event, p50; peer: docker exec."""

from native import pair

UNIT = "ms"
BAR = "ours <= 3"


def setup(bench):
    return pair(bench, 50, (200, 20), (10, 2), what="exec")
