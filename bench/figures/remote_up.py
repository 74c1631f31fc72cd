"""900 kB arguments (0.1.5 takes no more than 1,000,000 bytes)."""

from remote import remote_pair

UNIT = "MB/s"
BAR = "ratio >= 5"


def setup(bench):
    return remote_pair(bench, "up")
