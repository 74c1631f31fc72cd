"""The sandboxes in which the attempts run, by backend."""

import os
import subprocess
from pathlib import Path

import docker_fixtures
from agxtest import images
from agxtest.agbox import Client
from agxtest.daemon import DockerDaemon, NativeDaemon
from agxtest.server import wait_for
from escapes import PROBE

IMAGE = "agx-probe:1"
PIDS = 200  # a fork bomb should not have to be a large one
# The paths of the objects in the image.
SHARED, LEFT = "/shared", "/left"
PLACES = {
    "setuid": "/probe-setuid",
    "device": "/device",
    "link": f"{SHARED}/link",
    "kept": f"{SHARED}/kept",
    "left": LEFT,
    "mounted_setuid": f"{SHARED}/probe-setuid",
    "mounted_device": f"{SHARED}/device",
}
NEIGHBOUR_PORT = 4000
CALL_S = 180  # only ends a hang: some commands use up all resources


def mount_of(world):
    return {"source": str(world.shared), "target": SHARED}


def writable_mount_of(world):
    return {"source": str(world.left), "target": LEFT, "writable": True}


def mounts_for(world, attempt):
    """The mounts for an attempt. Most attempts run without a writable directory of the host."""
    return [mount_of(world)] + ([writable_mount_of(world)] if attempt.writes else [])


def said(stage, run):
    """The stdout of a command."""
    pieces = stage.client.control.ReadExecOutput(exec_id=run.exec_id, stream=1)
    return b"".join(piece.data for piece in pieces).decode(errors="replace")


def neighbour(stage):
    """Starts another sandbox with a server and returns its address."""
    other = stage.ready()
    stage.client.start(other, "nc", "-ll", "-p", str(NEIGHBOUR_PORT), "-e", "true")
    listens = f"netstat -ltn | grep -q :{NEIGHBOUR_PORT}"
    wait_for(lambda: stage.runs(other, "sh", "-c", listens) == 0, "the neighbour listens", 60)
    address = said(stage, stage.client.run(other, "hostname", "-i")).split()[0]
    return {"neighbour": address, "neighbour_port": NEIGHBOUR_PORT}


def tree():
    """The image: busybox, the probe, the probe as a setuid program of root, and a device."""
    made = images.busybox()
    made.copy(PROBE, "probe")
    made.file("probe-setuid", Path(PROBE).read_bytes(), 0o4755)
    made.device("device", 1, 11)
    made.directory("deep", "deep/er")
    made.link("way", "deep/../deep/er")
    return made.finish()


class DockerStage(docker_fixtures.Stage):
    def __init__(self, directory, daemon=DockerDaemon, sandbox=None):
        sections = {"docker": {"pids": PIDS}, "sandbox": sandbox or {}}
        config = {k: v for k, v in sections.items() if v}
        super().__init__(directory, "agentix", config, daemon)
        self.engine.load(IMAGE, tree())

    @property
    def image(self):
        return IMAGE


class NativeStage:
    image = IMAGE

    def __init__(self, directory, config=None, daemon=NativeDaemon, sandbox=None):
        sections = {"native": {"pids": PIDS} | (config or {}), "sandbox": sandbox or {}}
        self.daemon = daemon(directory, config={k: v for k, v in sections.items() if v})
        self.client = None
        self.connect()
        subprocess.run(
            [os.environ["AGENTIX"], "image", "import", "-", "--name", IMAGE],
            input=tree(),
            env=self.daemon.env,
            check=True,
        )

    def connect(self):
        """Makes the client, also again after a restart of the daemon."""
        if self.client:
            self.client.close()
        self.client = Client(self.daemon.channel(), seconds=CALL_S)

    def restart(self):
        """Kills the daemon and starts it again."""
        self.daemon.restart()
        self.connect()

    def ready(self, **spec):
        return self.client.ready(image=IMAGE, **spec)

    def runs(self, sandbox_id, *command):
        """Runs a command in the sandbox and returns its exit code."""
        return self.client.run(sandbox_id, *command).exit_code

    def close(self):
        for each in self.client.box.ListSandboxes().sandboxes:
            self.client.deleted(each.sandbox_id)
        self.client.close()
        self.daemon.close()


STAGES = {"docker": DockerStage, "native": NativeStage}
