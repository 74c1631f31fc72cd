"""Sandboxes of the native backend without some of their guards, and with all others."""

import contextlib
import os
import shutil

from inside import PLACES, NativeStage, mounts_for, said

GUARDS = (
    "seccomp",
    "capabilities",
    "user-namespace",
    "no-new-privs",
    "masks",
    "read-only",
    "sys",
    "shm",
    "devices",
    "root",
    "mount-attributes",
    "suid",
    "dumpable",
    "descriptors",
    "environment",
    "pid-namespace",
    "net-namespace",
    "ipc-namespace",
)
# Without these there can be no user namespace: the kernel gives /proc, /sys and queues to who owns
# the namespace that they are of, and ids that are not mapped belong to nobody inside.
BELOW_USER = {"mount-attributes", "pid-namespace", "net-namespace", "ipc-namespace"}


def left_out(guards):
    """The file `off` of unguard.c."""
    off = set(guards)
    return " ".join(sorted(off | {"user-namespace"} if off & BELOW_USER else off))


class GuardedStage(NativeStage):
    """`agentix-init` of its daemon is unguard.c, with the real one beside it."""

    def __init__(self, directory, world):
        self.world = world
        self.place = directory / "init"
        self.place.mkdir(parents=True)
        init = self.place / "agentix-init"
        shutil.copy(os.environ["AGX_UNGUARD"], init)
        (self.place / "real").symlink_to(os.environ["AGENTIX_INIT"])
        (self.place / "root").write_text(str(world.top))
        self.kept = {}
        super().__init__(directory, {"init": init})

    def without(self, guards, attempt):
        """A sandbox for the attempt in which these are off."""
        (self.place / "off").write_text(left_out(guards))
        return self.ready(mounts=mounts_for(self.world, attempt))

    def attempt(self, box, attempt):
        run = self.client.run(box, "/probe", attempt.name, self.world.argument(attempt, **PLACES))
        return run.exit_code, said(self, run)

    def succeeds(self, attempt, off):
        """In a sandbox of its own, for it may change it. What it said where it does not."""
        with self.device_more() if "devices" in off else contextlib.nullcontext():
            box = self.without(off, attempt)
            status, output = self.attempt(box, attempt)
            self.client.deleted(box)
        return status == 0, output

    @contextlib.contextmanager
    def device_more(self):
        """All sandboxes of a daemon see one /dev."""
        device = self.daemon.place.run / "dev" / "kmsg"
        os.mknod(device, 0o020600, os.makedev(1, 11))
        yield
        device.unlink()

    def is_held(self, attempt, off):
        """In a sandbox that is kept: whoever comes next finds it as it was."""
        kind = off, attempt.writes
        if kind not in self.kept:
            self.kept[kind] = self.without(off, attempt)
        status, output = self.attempt(self.kept[kind], attempt)
        return status == 1, output
