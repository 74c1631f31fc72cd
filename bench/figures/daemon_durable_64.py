"""CreateSandbox by ghz, 64 at a time, durable when answered; peer: ours without group commit."""

from daemon import durable_pair

UNIT = "requests/s"
BAR = "ratio >= 3"


def setup(bench):
    return durable_pair(bench, 64)
