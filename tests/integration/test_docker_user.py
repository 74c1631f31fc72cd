"""agentixd of an ordinary user in Docker's group, with CAP_NET_ADMIN as its only capability: it may
not trace agentix-init, and reaches it over the container's streams."""

import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from agxtest.agbox import Client
from agxtest.daemon import DockerDaemon, DockerPlace
from agxtest.dockerd import SOCKET
from agxtest.protos import agbox

pytestmark = pytest.mark.deadline(120)

USER, GROUP = 4711, 4712  # neither has a name; the group may use the engine
RIGHTS = ["setpriv", f"--reuid={USER}", f"--regid={USER}", f"--groups={GROUP}"]
RIGHTS += ["--inh-caps=+net_admin", "--ambient-caps=+net_admin"]


class UserDaemon(DockerDaemon):
    """Its programs and directories are in a place that the user may read; the build may not be."""

    def __init__(self, mode):
        self.top = Path(tempfile.mkdtemp(prefix="agxuser"))
        self.top.chmod(0o755)
        for name in ("AGENTIXD", "AGENTIX_INIT"):
            shutil.copy(os.environ[name], self.top)
        directory = self.top / "d"
        for each in (directory, *(directory / n for n in ("run", "data", "conf", "home"))):
            each.mkdir()
            os.chown(each, USER, USER)
        os.chown(SOCKET, 0, GROUP)
        SOCKET.chmod(0o660)
        super().__init__(directory, mode)

    def make_place(self, directory):
        program = self.top / Path(os.environ["AGENTIXD"]).name
        return DockerPlace(directory, self.mode, [*RIGHTS, program])

    def close(self):
        super().close()
        shutil.rmtree(self.top)


@pytest.fixture(name="daemon", params=["agentix", "agbox"])
def fixture_daemon(request, deadline):
    daemon = UserDaemon(request.param)
    yield daemon
    daemon.close()
    assert daemon.world.containers() == daemon.world.networks() == []


@pytest.fixture(name="client")
def fixture_client(daemon):
    client = Client(daemon.channel())
    yield client
    client.close()


def image(daemon):
    return "agx-agbox:1" if daemon.mode == "agbox" else "agx-busybox:1"


def test_commands_run_and_their_output_is_there(daemon, client):
    box = client.ready(image=image(daemon))
    answer = client.start(box, "sh", "-c", "echo out; echo err >&2; exit 3")
    assert client.ended(answer.exec_id).exit_code == 3
    assert Path(answer.stdout_log_path).read_text() == "out\n"
    assert Path(answer.stderr_log_path).read_text() == "err\n"
    large = client.start(box, "head", "-c", "300000", "/dev/zero")
    assert client.ended(large.exec_id).exit_code == 0
    assert Path(large.stdout_log_path).stat().st_size == 300000
    client.deleted(box)


def test_commands_go_on_through_a_restart(daemon, client):
    box = client.ready(image=image(daemon))
    runs = client.start(box, "sh", "-c", "echo one; sleep 1.5; echo two; exit 9")
    ends = client.start(box, "sh", "-c", "echo early; exit 5")
    daemon.kill()
    time.sleep(0.3)
    daemon.start()
    client = Client(daemon.channel())
    assert client.ended(runs.exec_id).exit_code == 9
    assert client.ended(ends.exec_id).exit_code == 5
    assert Path(runs.stdout_log_path).read_text() == "one\ntwo\n"
    assert Path(ends.stdout_log_path).read_text() == "early\n"
    client.deleted(box)
    client.close()


@pytest.mark.parametrize("daemon", ["agbox"], indirect=True)
def test_writable_mount_belongs_to_the_user_inside_and_outside(daemon, client):
    """Commands in the sandbox run as the daemon's user."""
    shared = daemon.top / "shared"
    shared.mkdir()
    os.chown(shared, USER, USER)
    mounts = [{"source": str(shared), "target": "/data", "writable": True}]
    box = client.ready(image=image(daemon), mounts=mounts)
    ended = client.run(box, "sh", "-c", "id -u >/data/who; touch /workspace/mine")
    assert (ended.state, ended.exit_code) == (agbox().EXEC_STATE_FINISHED, 0)
    assert (shared / "who").read_text() == f"{USER}\n"
    assert (shared / "who").stat().st_uid == USER
    client.deleted(box)
