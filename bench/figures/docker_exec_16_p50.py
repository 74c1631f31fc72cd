"""/bin/true, accepted to terminal event, 16 at a time, p50; peer: docker exec."""

from docker import pair

UNIT = "ms"
BAR = None


def setup(bench):
    return pair(bench, 50, (320, 32), (32, 16), what="exec", at_once=16)
