"""mypy accepts the package in strict mode, and infers the type of `remote` for each shape."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def mypy(*arguments):
    command = [sys.executable, "-m", "mypy", "--no-incremental", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_is_typed():
    mypy()


def test_remote_is_typed_for_each_shape():
    mypy(str(ROOT / "tests/integration/typed_program.py"))
