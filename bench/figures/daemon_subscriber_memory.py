"""Memory of the daemon for each of 10,000 idle subscribers, its connections included."""

from daemon import Idle

UNIT = "bytes"
BAR = None
SUBSCRIBERS = 10000


def setup(bench):
    idle = Idle(bench, SUBSCRIBERS)
    return (
        lambda _: (idle.daemon.memory("RssAnon") - idle.before) / SUBSCRIBERS,
        None,
    )
