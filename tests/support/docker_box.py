"""usage: docker_box.py [--no-engine | --image NAME...] PROGRAM ARGUMENT...

Runs a program beside a real Docker Engine in new namespaces, which contain dockerd, its containers,
their networks and mounts, the program and all its descendants. DOCKER_HOST names the engine. The
exit status is the program's. Images (agxtest/images.py) are imported before it starts. A program
whose name ends in .py runs under this interpreter. With --no-engine there are only the namespaces,
like a machine without Docker, for tests of native sandboxes. AGX_BOX names the box's directory;
cgroups that a program makes at the top are removed with the box.

Nothing is left behind, whichever process is killed at any moment:

    launcher          the process that the caller sees. Any end of it closes a pipe
     `- watcher       has its own session, in the machine's namespaces: when the pipe is closed, or
         |            PID 1 has ended, it removes the engine's cgroups and files
         `- PID 1     of a new PID namespace; starts dockerd and the program. It dies with the
                      watcher, and the kernel then kills all processes of the namespace;
                      mounts and networks end with their last process

A killed watcher leaves files and empty cgroups; the next run of this program removes them.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "py"))
sys.dont_write_bytecode = True

from agxtest import dockerd, images, linux  # noqa: E402 (the path comes first)

PREFIX = "agx-docker-"
CGROUPS = Path("/sys/fs/cgroup")


class CannotRun(Exception):
    """The engine or the box cannot be made here; the text gives the reason."""


def check_machine(wanted):
    if os.geteuid() != 0:
        raise CannotRun("needs root")
    if wanted is not None and dockerd.missing():
        raise CannotRun(f"no {dockerd.missing()[0]}: docker.io is not installed")


# -- files and cgroups: made by the launcher, removed by the watcher


def make_directory():
    """A directory whose `lock` is held while the launcher or the watcher runs."""
    directory = Path(tempfile.mkdtemp(prefix=PREFIX))
    fresh = directory / "lock.new"
    lock = os.open(fresh, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    fresh.rename(directory / "lock")
    return directory, lock


def remove_cgroups(name):
    """Removes cgroups; a process that has just died may still be in one."""
    for top in (*CGROUPS.glob(name), *CGROUPS.glob(f"*/{name}")):
        below = sorted((p for p in top.rglob("*") if p.is_dir()), reverse=True)
        for each in (*below, top):
            with contextlib.suppress(OSError):
                linux.retry(each.rmdir, seconds=30)


def remove(directory):
    remove_cgroups(directory.name)
    shutil.rmtree(directory, ignore_errors=True)


def remove_orphans():
    for lock in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/lock"):
        with contextlib.suppress(OSError), lock.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(lock.parent)


# -- mounts


def mount_cgroups():
    """The cgroup hierarchies of the kernel, also where none is mounted, as in a chroot."""
    if any(CGROUPS.glob("*/cgroup.procs")) or (CGROUPS / "cgroup.procs").exists():
        return
    if not CGROUPS.exists():
        linux.mount("sysfs", "/sys", "sysfs")
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    hierarchies = [line.split(":")[:2] for line in lines]
    if [names for _, names in hierarchies] == [""]:
        linux.mount("cgroup2", CGROUPS, "cgroup2")
        return
    linux.mount("tmpfs", CGROUPS, "tmpfs", data="mode=755")
    for _, names in hierarchies:
        where = CGROUPS / (names.removeprefix("name=") or "unified")
        where.mkdir()
        linux.mount("cgroup", where, "cgroup" if names else "cgroup2", data=names or None)


def mount_sys():
    """Mounts a /sys with the interfaces of the new network namespace, and the former cgroups."""
    keep = Path("/run/cgroup")
    keep.mkdir()
    linux.mount(CGROUPS, keep, flags=linux.MS_BIND | linux.MS_REC)
    linux.mount("sysfs", "/sys", "sysfs")
    linux.mount(keep, CGROUPS, flags=linux.MS_MOVE)


def mount_world(directory):
    """Makes the root a mount point, which a chroot's root is not and which runc needs, and discards
    what dockerd writes outside its own directories."""
    root = directory / "root"
    root.mkdir()
    here = Path.cwd()
    linux.mount("/", root, flags=linux.MS_BIND | linux.MS_REC)
    linux.change_root(root)
    os.chdir(here)
    linux.mount("proc", "/proc", "proc")
    linux.mount("tmpfs", "/run", "tmpfs", data="mode=755")
    mount_sys()
    for place in ("etc", "opt"):
        upper, work = directory / f"{place}.upper", directory / f"{place}.work"
        upper.mkdir()
        work.mkdir()
        data = f"lowerdir=/{place},upperdir={upper},workdir={work}"
        linux.mount("overlay", f"/{place}", "overlay", data=data)


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        up = struct.pack("16sH14x", b"lo", linux.IFF_UP | linux.IFF_RUNNING)
        fcntl.ioctl(s, linux.SIOCSIFFLAGS, up)


# -- PID 1


def reap_until(pid):
    """Waits for a child and returns its exit status; also reaps orphans."""
    while True:
        ended, status = os.wait()
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def start_engine(directory, wanted):
    engine = dockerd.Dockerd.make(directory)
    os.environ.update(engine.env)
    engine.start()
    for name in wanted:
        images.require(engine, name)


def own_cgroups(name):
    """Shows of each hierarchy only a part that is named after the box, so that cgroups which its
    programs make at the top are removed with it."""
    for top in (CGROUPS, *CGROUPS.iterdir()):
        if not (top / "cgroup.procs").exists():
            continue
        with contextlib.suppress(OSError):  # version 1 has no such file
            (top / "cgroup.subtree_control").write_text("+cpu +memory +pids")
        (top / name).mkdir()
        linux.mount(top / name, top, flags=linux.MS_BIND)


def be_pid_1(directory, wanted, command):
    """Exits with the program's exit status, which ends everything else too."""
    linux.die_with_parent()
    linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWNET)
    mount_world(directory)
    loopback_up()
    os.environ["AGX_BOX"] = str(directory)
    if wanted is None:
        own_cgroups(directory.name)
    else:
        start_engine(directory, wanted)
    program = subprocess.Popen(command)
    return reap_until(program.pid)


def run_pid_1(directory, wanted, command):
    status = 1
    try:
        status = be_pid_1(directory, wanted, command)
    except BaseException:  # PID 1 has no caller to raise it to
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


# -- watcher and launcher


def be_watcher(directory, launcher_gone, wanted, command):
    """Waits until nothing is left and returns the exit status of PID 1."""
    os.setsid()
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    linux.unshare(linux.CLONE_NEWNS)
    linux.make_mounts_private()
    mount_cgroups()
    linux.unshare(linux.CLONE_NEWPID)
    pid = os.fork()
    if pid == 0:
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(each, signal.SIG_DFL)
        run_pid_1(directory, wanted, command)
    pidfd = os.pidfd_open(pid)
    linux.wait_readable(launcher_gone, pidfd)
    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    remove(directory)
    return os.waitstatus_to_exitcode(status)


def launch(wanted, command):
    check_machine(wanted)
    remove_orphans()
    directory, _lock = make_directory()
    launcher_gone, alive = os.pipe()
    watcher = os.fork()
    if watcher == 0:
        status = 1
        try:
            os.close(alive)
            status = be_watcher(directory, launcher_gone, wanted, command)
        except BaseException:  # it has no caller to raise it to
            traceback.print_exc()
            remove(directory)
        finally:
            os._exit(status if status >= 0 else 128 - status)
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, lambda *_: os.close(alive))
    _, status = os.waitpid(watcher, 0)
    return os.waitstatus_to_exitcode(status)


def parse(arguments):
    """Returns the images to import (None: no engine), and the command."""
    wanted = []
    if arguments[:1] == ["--no-engine"]:
        wanted, arguments = None, arguments[1:]
    while arguments[:1] == ["--image"]:
        wanted.append(arguments[1])
        arguments = arguments[2:]
    if not arguments:
        sys.exit(__doc__)
    if arguments[0].endswith(".py"):
        arguments = [sys.executable, *arguments]
    return wanted, arguments


def main():
    wanted, command = parse(sys.argv[1:])
    try:
        return launch(wanted, command)
    except CannotRun as why:
        # The program would have printed TAP.
        print(f"1..0 # SKIP {why}")
        return 0


if __name__ == "__main__":
    sys.exit(main())
