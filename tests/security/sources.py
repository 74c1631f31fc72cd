"""Paths of the host that a sandbox can write to, and mounts and copies of such paths."""

import contextlib
import os
import shutil
from pathlib import Path

import grpc
from agxtest.agbox import refusal_of, state_name, unique
from agxtest.daemon import DockerDaemon, DockerPlace, NativeDaemon, NativePlace
from agxtest.server import wait_for
from inside import STAGES, said

BACKEND = os.environ["AGX_BACKEND"]
CHECKED, SECRET = "of the project", "of the host"
REFUSED = "is not followed: a sandbox may have made it"
PROGRAMS = ("init/agentix-init", "image/agentix-unpack", "forward/agentix-forward")
WAIT_S = 120  # only ends a hang


def unwalked(directory):
    """The path of the daemon with unwalk.c, with the real programs beside it."""
    build = Path(os.environ["AGENTIXD"]).parent.parent
    if not directory.exists():
        directory.mkdir(parents=True)
        shutil.copy(os.environ["AGX_UNWALK"], directory / "agentixd")
        for each in PROGRAMS:
            (directory / Path(each).name).symlink_to(build / each)
    return directory / "agentixd"


class UnwalkedNativePlace(NativePlace):
    def command(self, *options):
        return super().command(*options, program=unwalked(self.top / "programs"))


class UnwalkedNativeDaemon(NativeDaemon):
    def make_place(self, directory):
        return UnwalkedNativePlace(directory)


class UnwalkedDockerDaemon(DockerDaemon):
    def make_place(self, directory):
        return DockerPlace(directory, self.mode, (unwalked(directory / "programs"),))


DAEMONS = {
    "docker": (UnwalkedDockerDaemon, DockerDaemon),
    "native": (UnwalkedNativeDaemon, NativeDaemon),
}[BACKEND]


class Ground:
    """Directories of the host: a project that a sandbox may write to, and one that none may."""

    def __init__(self, top):
        self.project, self.outside = top / "project", top / "outside"
        for place, text in ((self.project / "a", CHECKED), (self.outside, SECRET)):
            (place / "etc").mkdir(parents=True)
            (place / "etc" / "file").write_text(text)

    @property
    def source(self):
        """The host's path of a directory in the project."""
        return self.project / "a" / "etc"

    def sandbox(self, stage):
        """Makes a sandbox that may write to the project."""
        mount = {"source": str(self.project), "target": "/project", "writable": True}
        return stage.ready(mounts=[mount])

    def attack(self, stage, box):
        script = f"mv /project/a /project/o && ln -s {self.outside} /project/a"
        assert stage.runs(box, "sh", "-c", script) == 0


@contextlib.contextmanager
def staged(directory, walks=True, **options):
    """A daemon with the backend that AGX_BACKEND names."""
    stage = STAGES[BACKEND](directory, daemon=DAEMONS[walks], **options)
    try:
        yield stage
    finally:
        stage.close()


def both(tmp_path):
    """A daemon that follows symlinks, then ours; the last value says whether an attack is held."""
    for walks in (False, True):
        with staged(tmp_path / f"d{walks}", walks) as stage:
            yield stage, Ground(tmp_path / f"ground{walks}"), walks


def given(kind, source, **spec):
    """A spec with this source as a mount or as a copy, at /in."""
    one = {"source": str(source), "target": "/in"}
    return spec | ({"mounts": [one]} if kind == "mount" else {"copies": [one]})


def settled(stage, box):
    """Waits for a state that lasts, and returns it."""

    def lasts():
        state = state_name(stage.client.get(box).state)
        return state if state in ("READY", "FAILED", "STOPPED") else None

    return wait_for(lasts, "it has come to something", WAIT_S)


def outcome(stage, path="/in/file", **spec):
    """The text of this file in a new sandbox, or the reason why there is no sandbox."""
    box = unique("box")
    try:
        stage.client.create(box, image=stage.image, **spec)
    except grpc.RpcError as error:
        return refusal_of(error).message
    if settled(stage, box) == "FAILED":
        return stage.client.get(box).error_message
    text = read(stage, box, path)
    stage.client.deleted(box)
    return text


def read(stage, box, path):
    return said(stage, stage.client.run(box, "sh", "-c", f"cat {path}"))


def judge(ground, held, text):
    """Our daemon names the symlink and the reason; the other daemon reveals the secret."""
    if held:
        assert REFUSED in text and str(ground.project / "a") in text
    else:
        assert text == SECRET


def stops(stage, box):
    wait_for(lambda: state_name(stage.client.get(box).state) == "STOPPED", "it stops", WAIT_S)


def awaited_resume(stage, box):
    """True if the sandbox runs again; otherwise a text with the reason."""

    def come_to():
        handle = stage.client.get(box)
        state = state_name(handle.state)
        if state == "READY":
            return True
        return handle.error_message if state in ("STOPPED", "FAILED") else None

    return wait_for(come_to, "it has come to something", WAIT_S)
