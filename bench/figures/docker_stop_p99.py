"""Stop of a sandbox whose main process ends on TERM, p99; peer: docker stop -t 5."""

from docker import pair

UNIT = "ms"
BAR = None


def setup(bench):
    return pair(bench, 99, (10, 2), what="stop")
