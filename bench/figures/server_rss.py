"""Resident memory of the server with one idle client that has called before."""

from remote import Driver, Server, resident, wait_healthy

UNIT = "MiB"
BAR = "ours <= 8"


def setup(bench):
    def one(side):
        server = Server(bench, side)
        wait_healthy(server, server.url)
        Driver(bench, side, server.url)
        return lambda seconds: resident(server.child.pid)

    return one("ours"), one("agentixx-0.1.5")
