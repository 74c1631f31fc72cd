"""Resident memory of a worker that has run plain functions and coroutines."""

import pathlib

from remote import Driver, Server, resident, wait_healthy

UNIT = "MiB"
BAR = None


def setup(bench):
    def one(side):
        server = Server(bench, side)
        wait_healthy(server, server.url)
        Driver(bench, side, server.url)
        parent = server.child.pid
        children = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return lambda seconds: resident(children[0])

    return one("ours"), one("agentixx-0.1.5")
