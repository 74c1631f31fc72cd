"""tests/support/docker_box.py: starts a separate Docker Engine, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from agxtest import dockerd
from agxtest.server import wait_for

BOX = Path(__file__).parents[1] / "support" / "docker_box.py"
TOP = "/tmp"
# Prints its box, starts a container that keeps running, prints that, and waits.
STAY = """
echo $AGX_DOCKER_BOX
docker run -d --name stays --init agx-busybox:1 sleep 1000 >/dev/null && echo runs
sleep 1000
"""

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or dockerd.missing(), reason="needs root and docker.io"
)


def command(*words):
    return [sys.executable, str(BOX), "--image", "busybox", *words]


def env(top):
    """An environment in which boxes have their files below `top`."""
    return os.environ | {"TMPDIR": str(top)}


def run(script, prefix=(), top=TOP):
    return subprocess.run(
        [*prefix, *command("sh", "-c", script)],
        env=env(top),
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


class Staying:
    """A box whose program and container run until they are killed."""

    def __init__(self, top=TOP):
        self.process = subprocess.Popen(
            command("sh", "-c", STAY),
            env=env(top),
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.name = Path(self.process.stdout.readline().strip()).name
        assert self.process.stdout.readline() == "runs\n"
        assert leftovers(self.name, top)

    def watcher(self):
        """The launcher's only child."""
        pid = self.process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text())

    def end(self):
        self.process.wait(200)
        self.process.stdout.close()


def names(path, needle):
    try:
        return needle in path.read_text(errors="replace")
    except OSError:
        return False


def leftovers(name, top=TOP):
    """Files and cgroups of this box, and processes that run for it or see its mounts."""
    assert name.startswith("agx-docker-")
    found = [*Path(top).glob(name), *Path("/sys/fs/cgroup").glob(f"*/{name}")]
    found += Path("/sys/fs/cgroup").glob(name)
    return found + processes(name)


def processes(name):
    """The processes that run for this box or see its mounts."""
    found = Path("/proc").glob("[0-9]*")
    return [p for p in found if names(p / "cmdline", name) or names(p / "mountinfo", name)]


def gone(name):
    wait_for(lambda: not leftovers(name), "nothing is left")


def test_program_runs_beside_an_engine_and_its_exit_status_counts():
    done = run(
        """echo $AGX_DOCKER_BOX
        docker run --rm agx-busybox:1 echo from inside
        docker run -d -p 127.0.0.1:8080:80 agx-busybox:1 \
            sh -c 'echo served >/tmp/index.html; httpd -f -p 80 -h /tmp' >/dev/null
        for i in $(seq 600); do busybox wget -qO- 127.0.0.1:8080 && break; sleep 0.1; done
        exit 7"""
    )
    where, *said = done.stdout.splitlines()
    assert done.returncode == 7, done.stderr
    assert said == ["from inside", "served"]
    assert not leftovers(Path(where).name)


def test_command_that_enters_a_container_sees_its_files_and_not_the_machines():
    done = run(
        f"""docker run -d --name box agx-busybox:1 sleep 1000 >/dev/null
        docker exec box ls -d /bin/busybox {Path(__file__)}"""
    )
    assert done.stdout.splitlines() == ["/bin/busybox"], done.stderr
    assert f"{Path(__file__)}: No such file" in done.stderr


def test_program_that_dies_of_a_signal_ends_like_in_a_shell():
    assert run("kill -9 $$").returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize("signo", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_launcher_that_is_ended_leaves_nothing(signo):
    box = Staying()
    box.process.send_signal(signo)
    box.end()
    gone(box.name)


def test_group_that_is_killed_leaves_nothing():
    box = Staying()
    os.killpg(box.process.pid, signal.SIGKILL)
    box.end()
    gone(box.name)


def test_watcher_that_is_killed_takes_all_processes_along_and_the_next_run_its_files(tmp_path):
    """In a separate directory, because any later run removes the files, and other tests run too."""
    box = Staying(tmp_path)
    os.kill(box.watcher(), signal.SIGKILL)
    box.end()
    assert box.process.returncode != 0
    wait_for(lambda: not processes(box.name), "no process runs")
    assert leftovers(box.name, tmp_path)
    assert run("true", top=tmp_path).returncode == 0
    assert not leftovers(box.name, tmp_path)


def test_boxes_do_not_see_each_other():
    one, two = Staying(), Staying()
    assert one.name != two.name
    one.process.kill()
    one.end()
    gone(one.name)
    assert leftovers(two.name)
    two.process.kill()
    two.end()
    gone(two.name)


def test_works_in_a_chroot_without_cgroups(tmp_path):
    """The root of the chroot is not a mount point, and its /sys is empty."""
    binds = ["usr", "etc", "dev", "proc", "var", "tmp", *BOX.parents[-2].parts[1:]]
    binds += Path(sys.executable).resolve().parts[1:2]
    script = f"""
        for each in {" ".join(dict.fromkeys(binds))}; do
            mkdir -p $1/$each && mount --rbind /$each $1/$each
        done
        mkdir -p $1/sys $1/run $1/opt
        for each in bin sbin lib lib64; do ln -s usr/$each $1/$each; done
        shift; exec chroot "$@"
    """
    root = tmp_path / "root"
    prefix = ["unshare", "-m", "sh", "-ec", script, "sh", str(root), str(root)]
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    if "/" not in (line.split()[4] for line in mounts):
        prefix = []  # we are in a chroot, where unshare cannot make mounts private
    done = run("echo $AGX_DOCKER_BOX; docker run --rm agx-busybox:1 echo inside", prefix)
    where, *said = done.stdout.splitlines()
    assert said == ["inside"], done.stderr
    assert not leftovers(Path(where).name)
