"""The worker over bare socketpairs, `def`: 64 calls at once."""

from worker_floor import THREAD, Floor

UNIT = "calls/s"
BAR = None


def setup(bench):
    return Floor(bench, "add", THREAD).rate, None
