#!/usr/bin/python3
"""usage: link_package.py FROM TO

Makes TO a directory of links to what is in the package FROM, so that extension modules can be
built beside them.
"""

import sys
from pathlib import Path


def main():
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    for old in target.iterdir():
        if old.is_symlink():
            old.unlink()
    for entry in source.iterdir():
        if entry.name not in ("meson.build", "__pycache__"):
            (target / entry.name).symlink_to(entry)


main()
