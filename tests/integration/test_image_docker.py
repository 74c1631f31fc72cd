"""Images of a real Docker Engine: from `docker save`, and directly from the engine."""

import json
import subprocess

import pytest
from agxtest.daemon import Daemon
from agxtest.dockerd import Dockerd
from image_fixtures import *  # noqa: F403
from image_fixtures import ImageStage

pytestmark = pytest.mark.deadline(120)

BUSYBOX = "agx-busybox:1"
NAME = f"docker.io/library/{BUSYBOX}"


@pytest.fixture(name="engine")
def fixture_engine():
    return Dockerd.here()


class EngineDaemon(Daemon):
    """A daemon with the fake backend; the environment names the engine."""

    @property
    def env(self):
        return super().env | Dockerd.here().env


@pytest.fixture(name="stage")
def fixture_stage(tmp_path):
    daemon = EngineDaemon(tmp_path / "d")
    yield ImageStage(daemon)
    daemon.close()


def engine_id(engine, name=BUSYBOX):
    return engine.run("inspect", "--format", "{{.Id}}", name).strip()


def check(stage, engine):
    """Checks that the image is the same as the engine's."""
    found = stage.inspect(BUSYBOX)
    assert found["image"]["id"] == engine_id(engine)
    assert found["image"]["names"] == [NAME]
    command = engine.run("inspect", "--format", "{{json .Config.Cmd}}", BUSYBOX)
    assert found["config"]["command"] == json.loads(command)
    layers = engine.run("inspect", "--format", "{{json .RootFS.Layers}}", BUSYBOX)
    assert found["layers"] == json.loads(layers)
    (layer,) = stage.layers().values()
    assert (layer / "bin" / "busybox").stat().st_size > 100000
    assert (layer / "bin" / "sh").is_symlink()


def test_docker_save_piped_into_import(stage, engine):
    saved = subprocess.run(
        ["/usr/bin/docker", "save", BUSYBOX], capture_output=True, check=True, timeout=60
    ).stdout
    assert stage.ok("import", "-", data=saved).strip() == engine_id(engine)
    check(stage, engine)


def test_docker_save_into_a_file(stage, engine, tmp_path):
    engine.run("save", "--output", tmp_path / "a.tar", BUSYBOX)
    stage.ok("import", tmp_path / "a.tar")
    check(stage, engine)


def test_an_image_straight_from_the_engine(stage, engine):
    assert stage.ok("pull", f"docker-daemon:{BUSYBOX}").strip() == engine_id(engine)
    check(stage, engine)


def test_an_image_that_the_engine_has_not(stage):
    said = stage.fails("pull", "docker-daemon:nobody/has:it")
    assert "nobody/has:it" in said
    assert stage.is_empty()


def test_a_container_exported_is_a_root_file_system(stage, engine):
    container = engine.run("create", BUSYBOX).strip()
    try:
        exported = subprocess.run(
            ["/usr/bin/docker", "export", container], capture_output=True, check=True, timeout=60
        ).stdout
    finally:
        engine.run("rm", container)
    stage.ok("import", "-", "--name", "exported", data=exported)
    (layer,) = stage.layers().values()
    assert (layer / "bin" / "busybox").exists()
