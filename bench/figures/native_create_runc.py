"""Create to READY with network, p50; peer: runc run -d, without one."""

from native import pair

UNIT = "ms"
BAR = None


def setup(bench):
    return pair(bench, 50, (30, 3), (10, 2), peer="runc", what="create")
