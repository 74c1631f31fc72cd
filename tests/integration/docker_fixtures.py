"""For tests on a real Docker Engine: a daemon, a client, and a check that nothing is left."""

import pytest
from agxtest import nft
from agxtest.agbox import Client
from agxtest.daemon import DockerDaemon
from agxtest.dockerd import Dockerd
from agxtest.protos import agbox
from agxtest.server import wait_for

BUSYBOX = "agx-busybox:1"


class Stage:
    """A daemon on the engine, and its client, which is made again when the daemon starts again."""

    def __init__(self, directory, mode, config, daemon=DockerDaemon):
        self.daemon = daemon(directory, mode, config)
        self.engine = self.daemon.world
        self.mode = mode
        self.client = None
        self.connect()

    def connect(self):
        if self.client:
            self.client.close()
        self.client = Client(self.daemon.channel())

    def restart(self):
        self.daemon.restart()
        self.connect()

    def start(self):
        """Starts the daemon after daemon.kill()."""
        self.daemon.start()
        self.connect()

    def ready(self, sandbox_id="", **spec):
        return self.client.ready(sandbox_id, **({"image": self.image} | spec))

    def create(self, sandbox_id, **spec):
        return self.client.create(sandbox_id, **({"image": self.image} | spec))

    @property
    def image(self):
        return "agx-agbox:1" if self.mode == "agbox" else BUSYBOX

    def primary(self, sandbox_id):
        """The engine's name of the primary container."""
        return f"{'agbox-primary' if self.mode == 'agbox' else 'agentix'}-{sandbox_id}"

    def inspect(self, sandbox_id):
        return self.engine.inspect(self.primary(sandbox_id))

    def state(self, sandbox_id):
        return self.client.get(sandbox_id).state

    def runs(self, sandbox_id, *command):
        """Runs a command in the sandbox and returns its exit code."""
        return self.client.run(sandbox_id, *(command or ("true",))).exit_code

    def delete_all(self):
        """Deletes all sandboxes and checks that nothing of them is left."""
        if not self.engine.runs():
            self.engine.start()
        if self.daemon.process.poll() is not None:
            self.start()
        for each in self.client.box.ListSandboxes().sandboxes:
            if each.state not in (agbox().SANDBOX_STATE_DELETING, agbox().SANDBOX_STATE_DELETED):
                self.client.box.DeleteSandbox(sandbox_id=each.sandbox_id)
        wait_for(lambda: not self.client.box.ListSandboxes().sandboxes, "all are deleted", 60)
        # The daemon removes objects that the engine made late for a killed daemon when it looks.
        wait_for(lambda: self.engine.containers() == [], "no container is left", 60)
        wait_for(lambda: self.engine.networks() == [], "no network is left", 60)
        assert self.engine.call("GET", "/volumes")["Volumes"] in (None, [])
        wait_for(lambda: not [t for t in nft.tables() if "agentix" in t], "no table is left")

    def close(self):
        try:
            self.delete_all()
        finally:
            self.client.close()
            self.daemon.close()


@pytest.fixture(name="engine")
def fixture_engine():
    return Dockerd.here()


@pytest.fixture(name="start_stage")
def fixture_start_stage(tmp_path, deadline):
    """start_stage(mode, config) starts a daemon on the engine, which leaves nothing there."""
    stages = []

    def start(mode="agentix", config=None):
        stages.append(Stage(tmp_path / f"d{len(stages)}", mode, config))
        return stages[-1]

    yield start
    for stage in stages:
        stage.close()


@pytest.fixture(name="stage")
def fixture_stage(start_stage):
    return start_stage()
