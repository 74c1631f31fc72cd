"""A unary call of an `async def` beside a process that uses all CPU time it can get, p50."""

from remote import Process, remote_pair

UNIT = "us"
BAR = None


def setup(bench):
    sides = remote_pair(bench, "async_p50")
    Process(bench, ["/usr/bin/python3", "-I", "-c", "while True: pass"])
    return sides
