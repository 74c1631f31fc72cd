"""The wheel: it installs, works with every installed Python, and other wheels can extend it."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import interpreters
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = os.environ["AGENTIX_BUILD"]


def run(*command, **kwargs):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **kwargs)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def install(wheel, target):
    run(
        sys.executable, "-m", "pip", "--disable-pip-version-check", "install",
        "--no-index", "--no-deps", "--target", target, wheel,
    )  # fmt: skip


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    return Path(run(ROOT / "tools/make_wheel.py", BUILD, out))


def make_addition(directory):
    """A wheel of a third party, with agentix/extra/ and agentix/deployment/extra.py."""
    path = directory / "extra-1-py3-none-any.whl"
    info = "extra-1.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("agentix/extra/__init__.py", "NAME = 'extra'\n")
        archive.writestr("agentix/deployment/extra.py", "class Extra: pass\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: extra\nVersion: 1\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(
            f"{info}/entry_points.txt",
            "[agentix.deployment]\nextra = agentix.deployment.extra:Extra\n",
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def test_the_wheel_is_named_for_the_limited_api_and_is_reproducible(wheel, tmp_path):
    assert wheel.name.startswith("agentix-0.1.0-cp311-abi3-linux_")
    again = Path(run(ROOT / "tools/make_wheel.py", BUILD, tmp_path))
    assert again.read_bytes() == wheel.read_bytes()
    names = zipfile.ZipFile(wheel).namelist()
    assert "agentix/py.typed" in names and "agentix/_client.abi3.so" in names


def test_a_wheel_that_adds_to_the_package_imports(wheel, tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    install(wheel, ours)
    install(make_addition(tmp_path), theirs)
    code = (
        "import agentix, agentix.extra, agentix.deployment.extra; print(agentix.extra.NAME, "
        "agentix.load_deployment('extra').__name__, agentix.deployment.deployments().sources())"
    )
    deps = next(p for p in sys.path if p.endswith("site-packages"))
    for order in (f"{ours}:{theirs}", f"{theirs}:{ours}"):
        env = {**os.environ, "PYTHONPATH": f"{order}:{deps}"}
        if order.startswith(str(theirs)):
            # Their folder has no __init__.py of agentix, so ours stays the package.
            assert not (theirs / "agentix/__init__.py").exists()
        assert run(sys.executable, "-c", code, env=env) == "extra Extra {'extra': 'extra@1'}"


def test_nothing_heavy_is_imported_before_it_is_needed(wheel, tmp_path):
    install(wheel, tmp_path)
    code = (
        "import sys, agentix; print([m for m in ('asyncio', 'typing') if m in sys.modules]);"
        "from agentix import RuntimeClient; RuntimeClient('http://x'); "
        "print([m for m in ('pydantic', 'numpy', 'ssl', 'urllib.request') if m in sys.modules])"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    out = run("/usr/bin/python3", "-S", "-c", code, env=env).splitlines()
    assert out[0] == "[]"
    assert set(eval(out[1])) <= {"ssl"}  # asyncio itself imports it


@pytest.mark.parametrize("python", interpreters.FOUND)
def test_the_extension_modules_load_in(python, wheel, tmp_path):
    install(wheel, tmp_path)
    code = "import agentix._client, agentix._codec as c; print(c.unpack(c.pack([1])))"
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    assert run(python, "-c", code, env=env) == "[1]"
