"""The worker's exec to its first result, of a plain `def` without heavy imports."""

from worker_floor import first_result_ms

UNIT = "ms"
BAR = "ours <= 40"


def setup(bench):
    return lambda seconds: first_result_ms(bench, "add"), None
