"""For tests of the native backend over gRPC: a daemon, a client, snapshots of the machine."""

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
CALL_S = 120  # far more than any answer takes: it only ends a hang
GONE_S = 60  # for objects that the kernel removes later
CHUNK = 1 << 16


class Stage:
    """A daemon in the test's box, and its client, which is made again after each start of the
    daemon. `before` is the state of the machine when no daemon ran."""

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
        """Waits until the daemon answers. After a kill, a program that the daemon was just starting
        may keep the socket for a moment without answering."""
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
        """Kills the daemon and starts it again."""
        self.daemon.restart()
        self.connect()

    # -- images

    @property
    def images(self):
        return Stub(self.client.channel, "agentix.v1.ImageService", seconds=CALL_S)

    def load(self, name):
        """Imports an image of agxtest/images.py."""
        return self.send(images.archive(name))

    def send(self, data):
        """Imports an archive and returns its images."""
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
        """The states of all sandboxes, by id."""
        found = self.client.box.ListSandboxes().sandboxes
        return {each.sandbox_id: state_name(each.state) for each in found}

    def runs(self, sandbox_id, *command):
        """Runs a command in the sandbox and returns its exit code."""
        return self.client.run(sandbox_id, *(command or ("true",))).exit_code

    # -- what is left

    def files(self):
        """The daemon's files, except records and logs, which it keeps for a while."""
        return host.files(self.place.data, besides=("store", "exec-logs"))

    def knows_all(self):
        """Whether the daemon has examined what the previous daemon left. A daemon that ends before
        that leaves it to the next."""
        return "manager.recovered" in self.daemon.log().rpartition("manager.loaded")[2]

    def leaves_nothing(self):
        """Stops the daemon and checks that the machine is as before. At its end the daemon removes
        its prepared objects, its mount and its control group; the kernel may remove some later."""
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
        """Deletes the sandboxes and checks that nothing is left."""
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
