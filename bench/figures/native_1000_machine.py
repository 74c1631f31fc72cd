"""Memory of the machine that each of 1,000 idle sandboxes uses."""

from native import alone

UNIT = "MiB"
BAR = "ours <= 1.5"


def setup(bench):
    return alone(bench, "machine", 1000, 1 / 1048576)
