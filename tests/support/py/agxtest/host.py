"""Snapshots of the machine, or of the test's box, to compare before and after a test."""

import contextlib
import itertools
import os
import socket
import stat
from pathlib import Path

from agxtest import nft

CGROUPS = Path("/sys/fs/cgroup")


def mounts():
    """All mounts of this namespace, without their numbers, which change each time."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return sorted(line.split(" ", 3)[3] for line in lines)


def cgroups():
    return sorted(top for top, _, _ in os.walk(CGROUPS))


def links():
    """The names of the network interfaces."""
    return sorted(name for _, name in socket.if_nameindex())


def rules():
    return nft.run("list ruleset")


def processes():
    """The processes, by pid and command, without kernel threads and zombies."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes()
            if words:
                found.append((int(entry.name), words.replace(b"\0", b" ").decode().strip()))
    return sorted(found)


def files(top, besides=()):
    """Each file below `top` with its number of blocks; directories by name, as they only grow."""
    found = {}
    for directory, below, names in os.walk(top):
        if directory == str(top):
            below[:] = [name for name in below if name not in besides]
        for name in itertools.chain(below, names):
            path = Path(directory, name)
            with contextlib.suppress(FileNotFoundError):  # it was removed meanwhile
                about = path.lstat()
                found[str(path)] = 0 if stat.S_ISDIR(about.st_mode) else about.st_blocks
    return found


def snapshot():
    """Everything except files."""
    return {
        "mounts": mounts(),
        "cgroups": cgroups(),
        "links": links(),
        "rules": rules(),
        "processes": processes(),
    }


def differences(before, after):
    """What was added and what was removed; empty: nothing has changed."""
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
