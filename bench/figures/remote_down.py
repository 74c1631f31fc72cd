"""1 MiB results."""

from remote import remote_pair

UNIT = "MB/s"
BAR = "ratio >= 5"


def setup(bench):
    return remote_pair(bench, "down")
