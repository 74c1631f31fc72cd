"""900 kB both ways, beside agentixx 0.2.6 (whose connection ends at 1 MiB up)."""

from remote import remote_pair

UNIT = "MB/s"
BAR = "ratio >= 5"


def setup(bench):
    return remote_pair(bench, "echo", peer="agentixx-0.2.6")
