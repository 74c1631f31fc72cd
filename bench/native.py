"""Shared by the figures of the native backend: the box of docker.py, in which our daemon and a
Docker Engine run beside each other, and bench/native_driver.py in it.

The peers are the docker command, `runc` with the same root file system and no network, and `bwrap`.
bwrap keeps no sandbox: its "create" is a run of /bin/true in new namespaces.
"""

from docker import FULL_SECONDS, Box, side

IMAGE = "busybox"


def box(bench):
    bench.program("src/cli/agentix")
    return Box(bench, IMAGE, driver="native_driver.py")


def pair(bench, percent, counts, peer_counts=None, peer="docker", **question):
    """Ours and a peer. `counts` has the number of samples of a full round and of a short one."""
    made = box(bench)
    return (
        side(made, "native", percent, counts, **question),
        side(made, peer, percent, peer_counts or counts, **question),
    )


def alone(bench, what, alive, scale=1.0):
    """One number of ours while `alive` sandboxes exist; there is no peer."""
    made = box(bench)
    return lambda _: made.ask(side="native", what=what, count=1, alive=alive) * scale, None


def lives(bench, alive):
    """The p50 of creates while `alive` sandboxes exist; there is no peer."""
    return side(box(bench), "native", 50, (20, 3), what="create", alive=alive), None


def rate(bench, at_once):
    made = box(bench)

    def measure_one(seconds):
        count = 20 * at_once if seconds >= FULL_SECONDS else 2 * at_once
        return made.ask(side="native", what="rate", count=count, at_once=at_once)[0]

    return measure_one, None
