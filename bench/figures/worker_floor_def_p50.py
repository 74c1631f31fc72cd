"""The worker over bare socketpairs, `def`: one call after the other, p50."""

from worker_floor import THREAD, Floor

UNIT = "us"
BAR = None


def setup(bench):
    return Floor(bench, "add", THREAD).p50_us, None
