"""Pulls images from a real Docker Engine into the store."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from agxtest.dockerd import Dockerd

pytestmark = pytest.mark.deadline(120)

DRIVER = os.environ["PULL_DRIVER"]
IMAGE = "agx-busybox:1"
NOT_FOUND = 5


def pull(tmp_path, ref):
    """Pulls and returns the words of the driver's last line."""
    env = os.environ | {"PULL_ENGINE": os.environ["DOCKER_HOST"].removeprefix("unix://")}
    command = [DRIVER, tmp_path / "store", tmp_path, ref]
    said = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    return said.stdout.splitlines()[-1].split(" ")


def test_an_image_of_the_engine_has_the_same_id_and_files(tmp_path):
    said, _, image_id, *layers = pull(tmp_path, f"docker-daemon:{IMAGE}")
    assert said == "got"
    assert image_id == Dockerd.here().call("GET", f"/images/{IMAGE}/json")["Id"]
    assert any((Path(layer) / "bin/busybox").exists() for layer in layers)
    names = json.loads((tmp_path / "store/refs.json").read_text())
    assert f"docker.io/library/{IMAGE}" in json.dumps(names)


def test_an_image_of_the_engine_is_found_by_its_id(tmp_path):
    image_id = Dockerd.here().call("GET", f"/images/{IMAGE}/json")["Id"]
    assert pull(tmp_path, f"docker-daemon:{image_id}")[:1] == ["got"]


def test_an_image_that_the_engine_has_not_is_not_found(tmp_path):
    said, _, code, *words = pull(tmp_path, "docker-daemon:agx-nothing:1")
    assert (said, int(code)) == ("failed", NOT_FOUND)
    assert "Docker Engine" in " ".join(words)
