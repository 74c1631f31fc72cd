"""The server's start to its first answer to GET /health."""

import time

from remote import Server, wait_healthy

UNIT = "ms"
BAR = "ours <= 20"


def setup(bench):
    def start(side):
        server = Server(bench, side)
        wait_healthy(server, server.url)
        taken = time.perf_counter() - server.started
        server.stop()
        return taken * 1000

    return lambda seconds: start("ours"), lambda seconds: start("agentixx-0.1.5")
