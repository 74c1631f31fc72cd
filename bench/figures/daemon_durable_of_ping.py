"""CreateSandbox by ghz, 64 at a time; peer: Ping of the same daemon."""

from daemon import Ours, durable, ghz, rate, started

UNIT = "requests/s"
BAR = "ratio >= 0.4"


def setup(bench):
    pinged = started(Ours(bench))
    return (
        lambda seconds: durable(bench, seconds, 64),
        lambda seconds: rate(ghz(bench, pinged, "Ping", seconds)),
    )
