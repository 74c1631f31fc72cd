"""Stop of a sandbox whose main process ends on TERM, 16 at a time, p50; peer: docker stop -t 5."""

from native import pair

UNIT = "ms"
BAR = None


def setup(bench):
    return pair(bench, 50, (64, 16), (16, 16), what="stop", at_once=16)
