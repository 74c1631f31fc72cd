"""/bin/true, accepted to terminal event, 64 at a time, p50; peer: docker exec."""

from native import pair

UNIT = "ms"
BAR = None


def setup(bench):
    return pair(bench, 50, (640, 64), (64, 64), what="exec", at_once=64)
