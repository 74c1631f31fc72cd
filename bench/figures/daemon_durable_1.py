"""CreateSandbox by ghz, one after the other; peer: ours without group commit."""

from daemon import durable_pair

UNIT = "requests/s"
BAR = None


def setup(bench):
    return durable_pair(bench, 1)
