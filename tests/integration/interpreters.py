"""The interpreters to test with: 3.11 always, others if they are installed."""

import shutil
import subprocess

NAMES = ["python3.11", "python3.12", "python3.13", "python3.14"]


def works(python):
    """Whether it runs: a name on PATH may be a launcher for a version that is not installed."""
    command = [python, "-c", "import asyncio"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


# Debian's own comes first: others on PATH may be missing or broken.
FOUND = ["/usr/bin/python3.11"]
FOUND += [path for name in NAMES[1:] if (path := shutil.which(name)) and works(path)]
