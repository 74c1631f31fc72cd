"""Events that arrive at 1,000 subscribers of one sandbox, while commands run in it."""

from daemon import create_one, sides
from measure import run

UNIT = "events/s"
BAR = None
SUBSCRIBERS, ROUNDS_PER_SECOND = 1000, 50


def setup(bench):
    made = {}

    def measure_one(daemon, seconds):
        # A new sandbox each time, so that the history that each subscriber reads first is short.
        made[daemon] = made.get(daemon, 0) + 1
        name = f"fanout{made[daemon]}"
        create_one(bench, daemon, name)
        rounds = max(1, round(seconds * ROUNDS_PER_SECOND))
        words = [bench.program("bench/subscribers"), daemon.socket, name, SUBSCRIBERS, rounds]
        return float(run(words).split()[1])

    return sides(bench, measure_one)
