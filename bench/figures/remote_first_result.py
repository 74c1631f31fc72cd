"""Server's start to a client's first result, including the start of the client's interpreter."""

import time

from remote import Driver, Server, wait_healthy

UNIT = "ms"
BAR = None


def setup(bench):
    def start(side):
        server = Server(bench, side)
        wait_healthy(server, server.url)
        driver = Driver(bench, side, server.url, cold=True)
        taken = time.perf_counter() - server.started
        driver.stop()
        server.stop()
        return taken * 1000

    return lambda seconds: start("ours"), lambda seconds: start("agentixx-0.1.5")
