"""Durable batches, 64 at a time: with shared commits (ours), with one commit each (peer)."""

import pathlib
import tempfile

from measure import run

UNIT = "batches/s"
BAR = "ratio >= 3"


def setup(bench):
    program = bench.program("bench/store_bench")

    def rate(how):
        def measure(seconds):
            # In the build directory: /tmp may be in memory, where a sync costs nothing.
            with tempfile.TemporaryDirectory(dir=bench.build) as folder:
                return float(run([program, how, pathlib.Path(folder) / "store", seconds]))

        return measure

    return rate("grouped"), rate("single")
