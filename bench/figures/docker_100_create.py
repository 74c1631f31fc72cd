"""Create to READY, 100 sandboxes alive, p50; peer: docker run -d."""

from docker import pair

UNIT = "ms"
BAR = None


def setup(bench):
    return pair(bench, 50, (3, 1), what="create", alive=100)
