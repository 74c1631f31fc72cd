"""Create to READY with networks prepared in advance, p50; peer: docker run -d."""

from docker import pair

UNIT = "ms"
BAR = "ours <= 369"


def setup(bench):
    return pair(bench, 50, (3, 1), ours="ready", what="create")
