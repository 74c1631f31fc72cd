"""Empty unary gRPC calls, 64 at a time: our server; peer: grpcio's with a Python handler."""

from rpc import rpc_pair

UNIT = "requests/s"
BAR = "ratio >= 1"


def setup(bench):
    return rpc_pair(bench, at_once=64, column=0)
