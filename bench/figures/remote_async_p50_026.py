"""A unary call of an `async def`, one after another, p50; peer: agentixx 0.2.6."""

from remote import remote_pair

UNIT = "us"
BAR = "ratio <= 0.1"


def setup(bench):
    return remote_pair(bench, "async_p50", peer="agentixx-0.2.6")
