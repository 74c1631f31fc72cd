"""Shared by the gRPC figures: one client, rpc_load, calls our server and grpcio's."""

import atexit
import subprocess
import tempfile

from measure import BenchError, run

METHOD = "/example.v1.Echo/Say"


def serve(command, path):
    """Starts a server, which prints one line when it listens; it ends with this program."""
    words = [str(word) for word in [*command, path]]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    atexit.register(process.wait)
    atexit.register(process.terminate)
    if not process.stdout.readline().startswith("listening"):
        raise BenchError(f"'{words[0]}' does not listen")


def rpc_pair(bench, at_once, column):
    """(ours, peer) with `at_once` concurrent calls on one connection; column 0 is requests/s,
    column 1 the median."""
    folder = tempfile.TemporaryDirectory(prefix="agx-bench-")
    atexit.register(folder.cleanup)
    load = bench.program("bench/rpc_load")
    servers = {
        "ours": [bench.program("examples/rpc_echo/rpc_echo")],
        "peer": [bench.peer("grpcio"), "-I", bench.root / "bench" / "rpc_peer.py"],
    }
    sides = []
    for name, command in servers.items():
        path = f"{folder.name}/{name}"
        serve(command, path)
        sides.append(
            lambda seconds, path=path: float(
                run([load, path, METHOD, seconds, at_once]).split()[column]
            )
        )
    return tuple(sides)
