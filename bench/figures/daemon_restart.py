"""Exec of the daemon to its first connection, with 10,000 stored sandboxes, after a kill -9."""

from daemon import Ours, create, started

UNIT = "ms"
BAR = "ours <= 300"


def setup(bench):
    daemon = started(Ours(bench))
    create(bench, daemon, 10000)

    def ours(_):
        daemon.kill()
        return daemon.start() * 1e3

    return ours, None
