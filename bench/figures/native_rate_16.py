"""Sandboxes created, READY and deleted, 16 at a time."""

from native import rate

UNIT = "1/s"
BAR = "ours >= 200"


def setup(bench):
    return rate(bench, 16)
