"""Create to READY, 1,000 sandboxes alive, p50."""

from native import lives

UNIT = "ms"
BAR = None


def setup(bench):
    return lives(bench, 1000)
