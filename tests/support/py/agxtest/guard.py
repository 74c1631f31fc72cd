"""Ends what a test started when the test's own process is killed and cannot do it.

One process for all our tests waits for the end of its standard input, which we hold open. Then it
kills what has a runtime directory that it was told of: daemons in the background are nobody's
children, so neither PR_SET_PDEATHSIG nor a process group would do.
"""

import contextlib
import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

# One that was just starting another is looked for again.
TRIES, PAUSE_S = 100, 0.05


def watch(runtime_directory):
    """From now on, whatever has this as its XDG_RUNTIME_DIR ends with this process."""
    guard = start(os.getpid())
    guard.stdin.write(f"{runtime_directory}\n")
    guard.stdin.flush()


@functools.cache
def start(pid):
    """Of the process `pid`, which is ours: one that was forked needs its own."""
    del pid
    return subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def found(directories):
    """The processes that were started with one of these."""
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
