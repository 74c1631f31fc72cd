"""A unary call of an `async def`, one after another, p99."""

from remote import remote_pair

UNIT = "us"
BAR = None


def setup(bench):
    return remote_pair(bench, "async_p99")
