"""Unary calls of a plain `def`, 64 at a time on one connection."""

from remote import remote_pair

UNIT = "calls/s"
BAR = "ratio >= 20, ours >= 20000"


def setup(bench):
    return remote_pair(bench, "def_64")
