"""Shared by tests of the native backend over gRPC: a daemon, a client, snapshots of the machine."""

import contextlib
import time

import grpc
import pytest
from agxtest import host, images
from agxtest.agbox import Client, Stub, state_name
from agxtest.daemon import NativeDaemon
from agxtest.protos import agbox
from agxtest.server import wait_for

BUSYBOX = "agx-busybox:1"
CALL_S = 120  # far more than any answer takes: a limit says when a hang is one
GONE_S = 60  # for what the kernel removes when it has time
CHUNK = 1 << 16


class Stage:
    """A daemon in the box that the test is in, and a client that is made anew where the daemon is.
    `before` is what the machine had when no daemon ran."""

    def __init__(self, directory, config=None, mode="agentix"):
        bare = host.snapshot()
        self.image = "agx-agbox:1" if mode == "agbox" else BUSYBOX
        self.daemon = NativeDaemon(directory, mode, config)
        self.place = self.daemon.place
        self.boxes = self.place.data / "native" / "boxes"
        self.trash = self.place.data / "native" / "trash"
        self.client = None
        self.connect()
        self.load("agbox" if mode == "agbox" else "busybox")
        self.stop()
        self.before = bare | {"processes": host.processes(), "files": self.files()}
        self.start()

    # -- the daemon

    def connect(self):
        """A program that a killed daemon was just starting has its socket for a moment, and answers
        nobody."""
        wait_for(self.reaches, "the daemon answers", CALL_S)

    def reaches(self):
        if self.client:
            self.client.close()
        self.client = Client(self.daemon.channel(), seconds=CALL_S)
        with contextlib.suppress(grpc.RpcError):
            return self.client.box.Ping(seconds=CALL_S)
        return None

    def start(self):
        self.daemon.start()
        self.connect()

    def stop(self):
        self.client.close()
        self.client = None
        self.daemon.stop(CALL_S)

    def restart(self):
        """A crash and a new start."""
        self.daemon.restart()
        self.connect()

    # -- images

    @property
    def images(self):
        return Stub(self.client.channel, "agentix.v1.ImageService", seconds=CALL_S)

    def load(self, name):
        """One of agxtest/images.py."""
        return self.send(images.archive(name))

    def send(self, data):
        """An archive; the images in it."""
        parts = [{"data": data[i : i + CHUNK]} for i in range(0, len(data), CHUNK)]
        return self.images.ImportImage(parts).images

    # -- sandboxes

    def create(self, sandbox_id, **spec):
        return self.client.create(sandbox_id, **({"image": self.image} | spec))

    def ready(self, sandbox_id="", **spec):
        return self.client.ready(sandbox_id, **({"image": self.image} | spec))

    def state(self, sandbox_id):
        return state_name(self.client.get(sandbox_id).state)

    def states(self):
        """Of all, by id."""
        found = self.client.box.ListSandboxes().sandboxes
        return {each.sandbox_id: state_name(each.state) for each in found}

    def runs(self, sandbox_id, *command):
        """The exit code of a command there."""
        return self.client.run(sandbox_id, *(command or ("true",))).exit_code

    # -- what is left

    def files(self):
        """Records and logs of what is over are kept for a while."""
        return host.files(self.place.data, besides=("store", "exec-logs"))

    def knows_all(self):
        """It has looked at what the daemon before it left. One that is ended earlier leaves that
        to the next."""
        return "manager.recovered" in self.daemon.log().rpartition("manager.loaded")[2]

    def leaves_nothing(self):
        """The daemon's own end takes the last of it along: what it keeps ready, its mount, its
        control group. The kernel takes its time for some."""
        wait_for(self.knows_all, "the daemon knows all that there is", CALL_S)
        wait_for(lambda: not list(self.trash.iterdir()), "the trash is empty", CALL_S)
        self.stop()
        end = time.monotonic() + GONE_S
        while left := host.differences(self.before, host.snapshot() | {"files": self.files()}):
            assert time.monotonic() < end, "still there:\n" + "\n".join(left[:50])
            time.sleep(0.05)

    def delete_all(self):
        if self.daemon.process.poll() is not None:
            self.start()
        for each in self.client.box.ListSandboxes().sandboxes:
            if each.state not in (agbox().SANDBOX_STATE_DELETING, agbox().SANDBOX_STATE_DELETED):
                self.client.box.DeleteSandbox(sandbox_id=each.sandbox_id)
        wait_for(lambda: not self.states(), "all are deleted", CALL_S)

    def close(self):
        """And nothing is left of its sandboxes."""
        try:
            self.delete_all()
            self.leaves_nothing()
        finally:
            if self.client:
                self.client.close()
            self.daemon.close()


@pytest.fixture(name="stage")
def fixture_stage(tmp_path, deadline):
    made = Stage(tmp_path / "d")
    yield made
    made.close()
