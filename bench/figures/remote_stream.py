"""Items of a stream."""

from remote import remote_pair

UNIT = "items/s"
BAR = "ratio >= 30, ours >= 200000"


def setup(bench):
    return remote_pair(bench, "stream")
