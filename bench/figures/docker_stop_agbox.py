"""Stop of a sandbox whose main process ends on TERM, p50; peer: agents-sandbox."""

from docker import agbox_pair

UNIT = "ms"
BAR = "ratio <= 1"


def setup(bench):
    return agbox_pair(bench, (3, 1), what="stop")
