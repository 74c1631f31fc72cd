"""Share of one core that the daemon uses with 10,000 idle subscribers, over a minute in all."""

import time

from daemon import Idle

UNIT = "%"
BAR = "ours <= 0.1"
SECONDS = 60 / 9  # a round's share of the minute


def setup(bench):
    idle = Idle(bench, 10000)

    def ours(seconds):
        span = SECONDS if seconds >= 0.1 else seconds
        before, began = idle.daemon.cpu_seconds(), time.monotonic()
        time.sleep(span)
        return 100 * (idle.daemon.cpu_seconds() - before) / (time.monotonic() - began)

    return ours, None
