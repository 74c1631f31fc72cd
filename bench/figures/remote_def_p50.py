"""A unary call of a plain `def`, one after another, p50."""

from remote import remote_pair

UNIT = "us"
BAR = "ratio <= 0.1"


def setup(bench):
    return remote_pair(bench, "def_p50")
