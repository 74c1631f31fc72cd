"""Create to READY with network, p50; peer: bwrap /bin/true, without one."""

from native import pair

UNIT = "ms"
BAR = None


def setup(bench):
    return pair(bench, 50, (30, 3), peer="bwrap", what="create")
