"""/bin/true, accepted to terminal event, 100 sandboxes alive, p50; peer: docker exec."""

from docker import pair

UNIT = "ms"
BAR = "ours <= 5"


def setup(bench):
    return pair(bench, 50, (200, 20), (10, 2), what="exec", alive=100)
