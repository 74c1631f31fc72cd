#!/usr/bin/python3
"""Fails on an #include that breaks the layers: a folder of src/ uses only folders below it.

The tables below are the rule; docs/ARCHITECTURE.md gives the reason.
"""

import re
import subprocess
import sys
from pathlib import Path

# Lowest first. A folder may include itself and every folder of a lower row, never a neighbour.
LAYERS = [
    ["agentix"],  # include/agentix, the installed headers: they include nothing else of ours
    ["base"],
    ["loop", "codec", "core"],
    ["wire", "fetch"],
    ["image"],
    ["store", "backend"],
    ["grpc"],
    ["daemon", "runtime", "worker", "client"],
    ["cli", "pyext"],
]

# Folders inside a layer, lowest first. The same rule applies to them. native and docker are in one
# row, so neither includes the other.
PARTS = {
    "backend": [
        ["backend"],
        ["backend/exec", "backend/net", "backend/files"],
        ["backend/config"],  # the configuration of both; a header, not a folder
        ["backend/native/net", "backend/native/limits", "backend/docker/api"],
        ["backend/native", "backend/docker"],
        ["backend/target"],  # the table of backends: files, not a folder
    ],
    "daemon": [["daemon/manager"], ["daemon/service"], ["daemon"]],
}

# Each is an executable of its own: code that two of them need belongs in a layer below both.
PROGRAMS = {"daemon", "init", "forward", "runtime", "worker", "cli"}

# Folders outside this order, and everything that they may include.
NARROW = {
    "init": ["init/", "base/", "codec/initproto"],
    "forward": ["forward/", "base/"],
}

# Headers that only these files may include: pattern of the header, pattern of the file, reason.
DOORS = [
    (r".*\.pb-c\.h", r"src/wire/.*", "generated protobuf headers stay in src/wire"),
    (r"Python\.h", r"src/pyext/py\.h", "src/pyext/py.h alone includes CPython's header"),
    (r"pyext/.*", r"src/pyext/.*", "Python stays in src/pyext"),
]

# Folders without I/O, clock or threads, and the system headers that would provide them.
PURE = ["codec", "core"]
IMPURE = (
    r"(uv|poll|pthread|threads|fcntl|dirent|netdb|signal|time)\.h"
    r"|(netinet|arpa|net)/.*|sys/(?!types\.h).*"
)

LEVEL = {folder: level for level, row in enumerate(LAYERS) for folder in row}
PART_LEVEL = {
    part: level for rows in PARTS.values() for level, row in enumerate(rows) for part in row
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def folder_of(path):
    """The layer of a source: NAME of src/NAME/... or include/NAME/...; None if it has none."""
    parts = Path(path).parts
    return parts[1] if len(parts) > 2 else None


def part_of(header):
    """The part of a layer that a source (its path below src/) belongs to: the longest listed."""
    names = [Path(header).with_suffix(""), *Path(header).parents]
    return next((str(name) for name in names if str(name) in PART_LEVEL), None)


def wrong_part(source, header):
    """Why a source may not include a header of its own layer, or None."""
    mine, target = part_of(source), part_of(header)
    if mine == target or PART_LEVEL[target] < PART_LEVEL[mine]:
        return None
    return f"{target}/ is not below {mine}/; turn the dependency round or move the code down"


def wrong_order(folder, source, header):
    """Why a source of `folder` may not include our header, or None."""
    target = header.split("/")[0]
    if folder in NARROW:
        if not header.startswith(tuple(NARROW[folder])):
            return f"{folder}/ may include only {', '.join(NARROW[folder])}"
        return None
    if folder == target:
        return wrong_part(source, header) if folder in PARTS else None
    if folder in PROGRAMS and target in PROGRAMS:
        return "programs never include each other; move what both need into a layer below"
    if target in NARROW or LEVEL[target] >= LEVEL[folder]:
        return f"{target}/ is not below {folder}/; turn the dependency round or move the code down"
    return None


def wrong_include(path, quote, header):
    """Why this source may not include that header, or None."""
    folder = folder_of(path)
    for headers, files, reason in DOORS:
        if re.fullmatch(headers, header):
            return None if re.fullmatch(files, path) else f"{reason}; go through its functions"
    if header.split("/")[0] in LEVEL or header.split("/")[0] in NARROW:
        return wrong_order(folder, path.removeprefix("src/"), header)
    if quote == '"':
        return 'no such layer; write our headers from src/, as "base/buf.h", and others in <>'
    if folder in PURE and re.fullmatch(IMPURE, header):
        return f"{folder}/ has no I/O, clock or threads; take what it gives as an argument"
    return None


def complaints(path):
    folder = folder_of(path)
    if folder not in LEVEL and folder not in NARROW:
        yield 1, "is in no layer; put it into a folder that tools/check_layers.py lists"
        return
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        found = INCLUDE.match(line)
        if found:
            reason = wrong_include(path, *found.groups())
            if reason:
                yield number, f"includes '{found[2]}': {reason}"


def main():
    root = Path(__file__).resolve().parent.parent
    command = [root / "tools/sources", "c", "header"]
    listed = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    bad = 0
    for name in listed.stdout.split():
        if not name.startswith(("src/", "include/")):
            continue
        for number, text in complaints(name):
            print(f"{name}:{number}: {text}")
            bad += 1
    sys.exit(bad > 0)


main()
