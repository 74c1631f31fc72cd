"""System calls without a function in Python 3.11."""

import ctypes
import os
import select
import signal
import time

CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x20000000, 0x40000000
MS_BIND, MS_MOVE, MS_REC, MS_PRIVATE = 0x1000, 0x2000, 0x4000, 1 << 18
MNT_DETACH = 2
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}[os.uname().machine]
PR_SET_PDEATHSIG = 1
SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 0x1, 0x40

libc = ctypes.CDLL(None, use_errno=True)


def checked(result, what):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags):
    checked(libc.unshare(flags), f"unshare {flags:#x}")


def setns(fd, kind):
    checked(libc.setns(fd, kind), f"setns {kind:#x}")


def mount(source, target, kind=None, flags=0, data=None):
    def text(value):
        return None if value is None else os.fsencode(value)

    call = libc.mount(text(source), text(target), text(kind), ctypes.c_ulong(flags), text(data))
    checked(call, f"mount '{source}' on '{target}'")


def die_with_parent(signo=signal.SIGKILL):
    checked(libc.prctl(PR_SET_PDEATHSIG, signo), "prctl PR_SET_PDEATHSIG")


def make_mounts_private():
    """Makes later mounts invisible outside this namespace.

    The root of a chroot is not a mount point. So this changes the namespace's own root, to which
    setns() leads; a descriptor leads back.
    """
    ours = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    here = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    itself = os.pidfd_open(os.getpid())
    setns(itself, CLONE_NEWNS)
    mount(None, "/", flags=MS_REC | MS_PRIVATE)
    os.fchdir(ours)
    os.chroot(".")
    os.fchdir(here)
    for fd in (ours, here, itself):
        os.close(fd)


def change_root(path):
    """Makes a mount point the root of this namespace.

    chroot() is enough for this process and its children, but not for a process that enters the
    namespace later, such as `docker exec`: setns() leads to the namespace's own root, which would
    be the machine's.
    """
    new = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    itself = os.pidfd_open(os.getpid())
    setns(itself, CLONE_NEWNS)
    os.fchdir(new)
    checked(libc.syscall(SYS_PIVOT_ROOT, b".", b"."), f"pivot_root '{path}'")
    checked(libc.umount2(b".", MNT_DETACH), "umount the old root")
    os.chroot(".")
    os.chdir("/")
    os.close(new)
    os.close(itself)


def wait_readable(*fds):
    """Waits until one of them is readable or at its end; a pidfd is when its process has ended."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    poll.poll()


def retry(action, seconds):
    """Repeats an action until it raises no OSError, or the time is over."""
    end = time.monotonic() + seconds
    while True:
        try:
            return action()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
