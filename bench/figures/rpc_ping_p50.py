"""An empty unary gRPC call, one after the other: the median."""

from rpc import rpc_pair

UNIT = "us"
BAR = "ratio <= 1"


def setup(bench):
    return rpc_pair(bench, at_once=1, column=1)
