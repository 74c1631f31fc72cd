#!/usr/bin/python3
"""usage: make_wheel.py BUILD-DIRECTORY OUT-DIRECTORY

Packs the Python package of a Meson build directory, with its extension modules, into one wheel for
CPython 3.11 and later on Linux. The same inputs give the same bytes. This file is also a PEP 517
build backend.
"""

import base64
import hashlib
import json
import platform
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUFFIXES = {".py", ".pyi", ".typed"}
# The limited API of 3.11 serves every later version: one build for all of them.
TAG = f"cp311-abi3-linux_{platform.machine()}"


def project():
    with open(ROOT / "pyproject.toml", "rb") as file:
        return tomllib.load(file)["project"]


def metadata(p):
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {p['name']}",
        f"Version: {p['version']}",
        f"Summary: {p['description']}",
        f"License: {p['license']['text']}",
        f"Requires-Python: {p['requires-python']}",
        *(f"Requires-Dist: {d}" for d in p["dependencies"]),
        "Description-Content-Type: text/markdown",
        "",
        (ROOT / p["readme"]).read_text(),
    ]
    return "\n".join(lines).encode()


def package_files(build):
    """Name in the wheel -> path: sources of the tree, extension modules of the build directory."""
    source, built = ROOT / "python/agentix", Path(build) / "python/agentix"
    found = [(p.relative_to(source), p) for p in source.rglob("*") if p.suffix in SUFFIXES]
    modules = [(p.relative_to(built), p) for p in built.glob("*.abi3.so")]
    if not modules:
        raise SystemExit(f"make_wheel: no extension modules in {built}: is it built?")
    return {f"agentix/{name.as_posix()}": path for name, path in sorted(found + modules)}


def write(wheel, content):
    """Writes the archive, with the list of hashes that installers check."""
    info = next(name for name in content if name.endswith(".dist-info/WHEEL")).rsplit("/", 1)[0]
    record = ""
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(data)}\n"
            _add(archive, name, data)
        _add(archive, f"{info}/RECORD", (record + f"{info}/RECORD,,\n").encode())


def _add(archive, name, data):
    entry = zipfile.ZipInfo(name)  # always dated 1980
    entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, data)


def make(build, out):
    """Makes the wheel and returns its name."""
    p = project()
    stem = f"{p['name']}-{p['version']}"
    content = {n: f.read_bytes() for n, f in package_files(build).items()}
    content[f"{stem}.dist-info/METADATA"] = metadata(p)
    content[f"{stem}.dist-info/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: make_wheel\nRoot-Is-Purelib: false\nTag: {TAG}\n"
    ).encode()
    content[f"{stem}.dist-info/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    Path(out).mkdir(parents=True, exist_ok=True)
    name = f"{stem}-{TAG}.whl"
    write(Path(out) / name, content)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517: makes a separate release build, then its wheel."""
    build = ROOT / "build/wheel"
    if not (build / "build.ninja").exists():
        command = ["meson", "setup", str(build), str(ROOT), "--buildtype=release"]
        subprocess.run(command, check=True, stdout=sys.stderr)
    targets = subprocess.run(
        ["meson", "introspect", "--targets", str(build)], check=True, capture_output=True
    ).stdout
    files = [f for t in json.loads(targets) for f in t["filename"] if f.endswith(".abi3.so")]
    names = [str(Path(f).relative_to(build)) for f in files]
    subprocess.run(["ninja", "-C", str(build), *names], check=True, stdout=sys.stderr)
    return make(build, wheel_directory)


def build_sdist(sdist_directory, config_settings=None):
    """PEP 517: there is no source distribution, only the repository."""
    raise NotImplementedError("there is no source distribution: build from the repository")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    print(Path(sys.argv[2]) / make(sys.argv[1], sys.argv[2]))
