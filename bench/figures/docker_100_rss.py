"""Anonymous memory (RssAnon) of the daemon with 100 sandboxes on Docker."""

from docker import Box

UNIT = "MiB"
BAR = "ours <= 24"


def setup(bench):
    box = Box(bench, "busybox")
    return lambda _: box.ask(side="ours", what="memory", count=1, alive=100) / 1048576, None
