"""/bin/true, accepted to terminal event, p50; peer: agents-sandbox."""

from docker import agbox_pair

UNIT = "ms"
BAR = "ours <= 5, ratio <= 0.05"


def setup(bench):
    return agbox_pair(bench, (100, 10), what="exec")
