"""A full disk: an import, a pull and a create of a native sandbox report it, leave nothing behind,
and work again when there is space."""

import contextlib
import os
import subprocess

import grpc
import pytest
from agxtest import archives, images
from agxtest.agbox import refusal_of, unique
from agxtest.registry import Registry
from agxtest.server import wait_for
from native_fixtures import *  # noqa: F403

pytestmark = pytest.mark.deadline(120)

SIZE = 32 << 20
LAYER = 8 << 20  # bytes of a file of the image
NAME = "docker.io/library/large:1"


def mounted(directory):
    """Mounts a separate small file system."""
    directory.mkdir(parents=True, mode=0o700)
    options = f"size={SIZE},mode=700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "agx", directory], check=True)
    return directory


@pytest.fixture(name="disk")
def fixture_disk(request, tmp_path):
    """The file system is mounted on the directory of the daemon's data that the test names."""
    place = mounted(tmp_path / "d" / "data" / "agentix" / request.param)
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture(name="stage")
def fixture_stage(disk, tmp_path, deadline):
    made = Stage(tmp_path / "d")  # noqa: F405
    yield made
    made.close()


@contextlib.contextmanager
def filled(disk, spare):
    """Fills the disk except so many bytes."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"\0" * 65536):
            pass
    left = filler.stat().st_size - spare
    try:
        os.truncate(filler, left)
        yield
    finally:
        filler.unlink()


def large():
    tree = images.busybox()
    tree.file("large", b"x" * LAYER)
    return tree.finish()


def refused(call):
    try:
        call()
    except grpc.RpcError as error:
        return refusal_of(error)
    raise AssertionError("a full disk refused nothing")


def names(stage):
    return {name for image in stage.images.ListImages().images for name in image.names}


def check_images(stage, disk, call, name, enough):
    """Three cases: no space; too little for the received bytes; `enough` for these, but not for the
    files."""
    before = stage.files()
    for spare in (0, 128 << 10, enough):
        with filled(disk, spare):
            found = refused(call)
            assert found.code == "RESOURCE_EXHAUSTED"
            assert "no space left on device" in found.message.lower()
            assert str(disk) in found.message
            assert name not in names(stage)
        wait_for(lambda: stage.files() == before, "nothing of it is left")
    call()
    assert name in names(stage)
    stage.images.RemoveImage(image=name)


@pytest.mark.parametrize("disk", ["images"], indirect=True)
def test_import(stage, disk):
    data = archives.docker_save(([NAME], [large()], {}))
    check_images(stage, disk, lambda: stage.send(data), NAME, LAYER + (4 << 20))


@pytest.mark.parametrize("disk", ["images"], indirect=True)
def test_pull(stage, disk):
    registry = Registry()
    try:
        name = registry.add("large", "1", large())
        pull = lambda: list(stage.images.PullImage(image=name))  # noqa: E731
        check_images(stage, disk, pull, name, 4 << 20)
    finally:
        registry.close()


@pytest.mark.parametrize("disk", ["native"], indirect=True)
def test_create(stage, disk):
    before = stage.files()
    with filled(disk, 0):
        box = unique("box")
        stage.create(box)
        wait_for(lambda: stage.state(box) == "FAILED", "it has failed", 60)
        found = stage.client.get(box)
        assert "no space left on device" in found.error_message.lower()
        assert f"{disk}/boxes/{box}" in found.error_message
        stage.client.deleted(box)
    wait_for(lambda: stage.files() == before, "nothing of it is left")
    assert stage.runs(stage.ready()) == 0
