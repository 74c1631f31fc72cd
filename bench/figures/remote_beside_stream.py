"""A unary call's p99 beside a stream at full speed on the same connection."""

from remote import remote_pair

UNIT = "ms"
BAR = "ours <= 15"


def setup(bench):
    return remote_pair(bench, "beside_stream", peer=None)
