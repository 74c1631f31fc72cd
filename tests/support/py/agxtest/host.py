"""What the machine has, or the box that a test is in: to be compared with what it has later."""

import contextlib
import itertools
import os
import socket
import stat
from pathlib import Path

from agxtest import nft

CGROUPS = Path("/sys/fs/cgroup")


def mounts():
    """Of this namespace, of every kind; not their numbers, which are new each time."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return sorted(line.split(" ", 3)[3] for line in lines)


def cgroups():
    return sorted(top for top, _, _ in os.walk(CGROUPS))


def links():
    """Interfaces by name."""
    return sorted(name for _, name in socket.if_nameindex())


def rules():
    return nft.run("list ruleset")


def processes():
    """By number and command; kernel threads and what has ended are nobody's."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes()
            if words:
                found.append((int(entry.name), words.replace(b"\0", b" ").decode().strip()))
    return sorted(found)


def files(top, besides=()):
    """Each file below with the blocks that it takes; directories by name, for theirs only grow."""
    found = {}
    for directory, below, names in os.walk(top):
        if directory == str(top):
            below[:] = [name for name in below if name not in besides]
        for name in itertools.chain(below, names):
            path = Path(directory, name)
            with contextlib.suppress(FileNotFoundError):  # it went while we looked
                about = path.lstat()
                found[str(path)] = 0 if stat.S_ISDIR(about.st_mode) else about.st_blocks
    return found


def snapshot():
    """All of it but files."""
    return {
        "mounts": mounts(),
        "cgroups": cgroups(),
        "links": links(),
        "rules": rules(),
        "processes": processes(),
    }


def differences(before, after):
    """What is there now and was not, and the other way round; empty: nothing has changed."""
    found = []
    for what, old in before.items():
        new = after[what]
        if isinstance(old, str):
            old, new = old.splitlines(), new.splitlines()
        if isinstance(old, dict):
            old, new = list(old.items()), list(new.items())
        found += [f"{what}: more: {each}" for each in new if each not in old]
        found += [f"{what}: less: {each}" for each in old if each not in new]
    return found
