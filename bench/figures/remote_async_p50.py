"""A unary call of an `async def`, one after another, p50: Unix socket (ours), TCP (0.1.5)."""

from remote import remote_pair

UNIT = "us"
BAR = "ratio <= 0.1, ours <= 130"


def setup(bench):
    return remote_pair(bench, "async_p50")
