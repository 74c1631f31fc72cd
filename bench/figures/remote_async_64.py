"""Unary calls of an `async def`, 64 at a time on one connection."""

from remote import remote_pair

UNIT = "calls/s"
BAR = "ratio >= 20, ours >= 40000"


def setup(bench):
    return remote_pair(bench, "async_64")
