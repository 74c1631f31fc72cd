"""A copy of this tree's sources, in which tests break the rule of a check."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(name="tree")
def fixture_tree(tmp_path):
    """A copy of this tree's sources, as a git repository of its own."""
    names = subprocess.check_output(["tools/sources", "c", "header"], cwd=ROOT, text=True).split()
    names += [".clang-format", ".clang-tidy", "ruff.toml", "meson.build", "meson_options.txt"]
    names += [str(p.relative_to(ROOT)) for p in ROOT.glob("tools/*")]
    for name in names:
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / name)
    subprocess.run(["git", "init", "--quiet", "."], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("/build/\n__pycache__/\n")
    return tmp_path
