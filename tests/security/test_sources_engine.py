"""The daemon compares an engine's mounts with the checked sources before anything runs.

After the check the engine opens the paths by itself. A proxy of the test, in front of the engine,
changes the paths in between, as an attacker could.
"""

import contextlib
import os
import re
import signal
import socket
import threading
from pathlib import Path

import docker_fixtures
import pytest
from agxtest.agbox import state_name
from agxtest.daemon import DockerDaemon, DockerPlace
from agxtest.server import wait_for
from inside import DockerStage
from sources import (
    CHECKED,
    SECRET,
    WAIT_S,
    Ground,
    awaited_resume,
    given,
    outcome,
    read,
    stops,
    unwalked,
)

pytestmark = pytest.mark.deadline(300)

STARTS = re.compile(rb"^POST \S*/containers/[^/ ]+/start ")


class Proxy:
    """A proxy of the engine's socket. It calls `before` and `after` around each container start."""

    def __init__(self, engine, path):
        self.engine, self.path = engine, str(path)
        self.before = self.after = lambda: None
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=[client], daemon=True).start()

    def serve(self, client):
        """Serves one connection. The daemon starts a container on a separate connection."""
        first = client.recv(1 << 16)
        starts = bool(STARTS.match(first))
        if starts:
            self.before()
        upstream = socket.socket(socket.AF_UNIX)
        upstream.connect(self.engine)
        upstream.sendall(first)
        threading.Thread(target=self.pass_on, args=[client, upstream], daemon=True).start()
        self.pass_on(upstream, client, self.after if starts else None)

    @staticmethod
    def pass_on(source, sink, first=None):
        """Copies bytes. It calls `first` before it passes on the first byte."""
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if first:
                    first()
                    first = None
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def close(self):
        self.listener.close()


def behind(proxy, walks):
    """The class of a daemon that uses the proxy as its engine."""

    class Daemon(DockerDaemon):
        def make_place(self, directory):
            if walks:
                return super().make_place(directory)
            return DockerPlace(directory, self.mode, (unwalked(directory / "programs"),))

        @property
        def env(self):
            return super().env | {"DOCKER_HOST": f"unix://{proxy.path}"}

    return Daemon


@pytest.fixture(name="proxy")
def fixture_proxy(tmp_path):
    engine = docker_fixtures.Dockerd.here().env["DOCKER_HOST"].removeprefix("unix://")
    proxy = Proxy(engine, tmp_path / "engine.sock")
    yield proxy
    proxy.close()


@pytest.fixture(name="ground")
def fixture_ground(tmp_path):
    return Ground(tmp_path / "ground")


@pytest.fixture(name="stage")
def fixture_stage(tmp_path):
    stage = DockerStage(tmp_path / "d")
    yield stage
    stage.close()


@contextlib.contextmanager
def proxied(tmp_path, proxy, walks=True):
    stage = DockerStage(tmp_path / f"d{walks}", behind(proxy, walks))
    try:
        yield stage
    finally:
        proxy.before = proxy.after = lambda: None
        stage.close()


def exchange(one, other):
    """Swaps the two paths."""
    spare = one.with_name("spare")
    one.rename(spare)
    other.rename(one)
    spare.rename(other)


def test_source_that_is_a_symlink_when_the_engine_opens_it_starts_nothing(tmp_path, proxy, ground):
    link = ground.project / "link"
    link.symlink_to(ground.outside / "etc")
    with proxied(tmp_path, proxy) as stage:
        proxy.before = lambda: exchange(ground.source, link)
        text = outcome(stage, **given("mount", ground.source))
        assert "must not be a symlink" in text and str(ground.source) in text


def test_source_that_is_another_only_while_the_engine_opens_it_starts_nothing(
    tmp_path, proxy, ground
):
    """The source is the checked one again when the daemon compares it."""
    with proxied(tmp_path, proxy, walks=False) as stage:
        proxy.before = proxy.after = lambda: exchange(ground.source, ground.outside / "etc")
        assert outcome(stage, **given("mount", ground.source)) == SECRET, "nothing is compared"
    with proxied(tmp_path, proxy) as stage:
        proxy.before = proxy.after = lambda: exchange(ground.source, ground.outside / "etc")
        text = outcome(stage, **given("mount", ground.source))
        assert "the engine mounted something else on '/in'" in text and str(ground.source) in text
        proxy.before = proxy.after = lambda: None
        assert outcome(stage, **given("mount", ground.source)) == CHECKED
        box = stage.ready(**given("mount", ground.source))
        stage.client.box.StopSandbox(sandbox_id=box)
        stops(stage, box)
        proxy.before = proxy.after = lambda: exchange(ground.source, ground.outside / "etc")
        stage.client.box.ResumeSandbox(sandbox_id=box)
        text = awaited_resume(stage, box)
        assert text is not True and "the engine mounted something else on '/in'" in text
        assert not stage.inspect(box)["State"]["Running"]


def test_target_may_lead_through_symlinks_of_the_image(stage, ground):
    mounts = [
        {"source": str(ground.source), "target": "/way/in"},
        {"source": str(ground.source / "file"), "target": "/way/file"},
    ]
    box = stage.ready(mounts=mounts)
    assert read(stage, box, "/deep/er/in/file") == CHECKED
    assert read(stage, box, "/deep/er/file") == CHECKED


def test_sandbox_that_moved_a_directory_above_a_mount_is_adopted(stage, ground):
    (ground.project / "sub" / "in").mkdir(parents=True)
    mounts = [
        {"source": str(ground.project), "target": "/project", "writable": True},
        {"source": str(ground.source), "target": "/project/sub/in"},
    ]
    box = stage.ready(mounts=mounts)
    assert read(stage, box, "/project/sub/in/file") == CHECKED
    assert stage.runs(box, "mv", "/project/sub", "/project/moved") == 0
    stage.restart()
    assert read(stage, box, "/project/moved/in/file") == CHECKED
    assert state_name(stage.client.get(box).state) == "READY"


# ---- an engine that starts a container by itself


class Restarted:
    """A sandbox in compatibility mode, whose main process says in a mount that it ran."""

    def __init__(self, tmp_path):
        self.stage = docker_fixtures.Stage(tmp_path / "d", "agbox", {})
        self.ground = Ground(tmp_path / "ground")
        self.shared = tmp_path / "shared"
        self.shared.mkdir()
        self.shared.chmod(0o777)
        mounts = [
            {"source": str(self.ground.source), "target": "/in"},
            {"source": str(self.shared), "target": "/shared", "writable": True},
        ]
        command = ["sh", "-c", "echo ran >>/shared/ran; exec sleep 100000"]
        self.box = self.stage.ready(mounts=mounts, command=command)
        wait_for(lambda: self.ran() == 1, "its main process has run", WAIT_S)

    def ran(self):
        """The number of times that the main process has run."""
        path = self.shared / "ran"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def state(self):
        return self.stage.inspect(self.box)["State"]

    def starts_again(self, meanwhile=lambda: None):
        """Kills the daemon, then PID 1; the engine starts the container again."""
        self.stage.daemon.kill()
        meanwhile()
        before = self.state()["Pid"]
        os.kill(before, signal.SIGKILL)
        wait_for(
            lambda: self.state()["Running"] and self.state()["Pid"] not in (0, before),
            "the engine has started it again",
            WAIT_S,
        )
        pid = self.state()["Pid"]
        exe = Path(f"/proc/{pid}/exe")
        wait_for(lambda: exe.readlink().name == ".agentix-init", "it is init", WAIT_S)
        return pid


@pytest.fixture(name="restarted")
def fixture_restarted(tmp_path):
    made = Restarted(tmp_path)
    yield made
    made.stage.close()


def test_start_that_shows_what_was_checked_is_adopted(restarted):
    pid = restarted.starts_again()
    assert Path(f"/proc/{pid}/task/{pid}/children").read_text() == "", "its main process waits"
    restarted.stage.start()
    wait_for(lambda: restarted.ran() == 2, "its main process has run", WAIT_S)
    assert restarted.state()["Pid"] == pid
    assert restarted.stage.runs(restarted.box, "true") == 0


def test_start_that_shows_something_else_ends(restarted):
    """The source is another directory while the engine starts it, and the right one afterwards."""
    ground = restarted.ground
    pid = restarted.starts_again(lambda: exchange(ground.source, ground.outside / "etc"))
    root = Path(f"/proc/{pid}/root/in/file")
    assert root.read_text() == SECRET, "the engine has mounted what nobody checked"
    exchange(ground.source, ground.outside / "etc")
    restarted.stage.start()
    wait_for(lambda: restarted.state()["Pid"] != pid, "it has ended", WAIT_S)
    log = restarted.stage.daemon.log
    wait_for(lambda: "the engine mounted something else on '/in'" in log(), "it is told", WAIT_S)
