"""Ends the processes of a test if the test's own process is killed and cannot end them.

One guard process waits for the end of its standard input, which the test process keeps open. Then
it kills every process with one of the runtime directories that it has read. Daemons in the
background are not children of the test, so neither PR_SET_PDEATHSIG nor a process group would work.
"""

import contextlib
import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

# A killed process may just have started another one, so it searches again.
TRIES, PAUSE_S = 100, 0.05


def watch(runtime_directory):
    """From now on every process with this XDG_RUNTIME_DIR ends with this process."""
    guard = start(os.getpid())
    guard.stdin.write(f"{runtime_directory}\n")
    guard.stdin.flush()


@functools.cache
def start(pid):
    """Starts the guard of process `pid`, which is this one: a forked process needs its own."""
    del pid
    return subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def found(directories):
    """The pids of the processes that were started with one of these directories."""
    wanted = {f"XDG_RUNTIME_DIR={directory}".encode() for directory in directories}
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if wanted.intersection(words):
            yield int(path.parent.name)


def main():
    directories = [line.rstrip("\n") for line in sys.stdin]
    for _ in range(TRIES):
        pids = list(found(directories))
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not pids:
            return
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
