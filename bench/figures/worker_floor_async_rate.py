"""The worker over bare socketpairs, `async def`: 64 calls at once."""

from worker_floor import LOOP, Floor

UNIT = "calls/s"
BAR = None


def setup(bench):
    return Floor(bench, "aadd", LOOP).rate, None
