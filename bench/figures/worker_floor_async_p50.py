"""The worker over bare socketpairs, `async def`: one call after the other, p50."""

from worker_floor import LOOP, Floor

UNIT = "us"
BAR = None


def setup(bench):
    return Floor(bench, "aadd", LOOP).p50_us, None
