"""Stop of a sandbox whose main process ends on TERM, p50; peer: docker stop -t 5."""

from docker import pair

UNIT = "ms"
BAR = None


def setup(bench):
    return pair(bench, 50, (3, 1), what="stop")
