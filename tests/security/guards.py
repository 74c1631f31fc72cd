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
    "ptys",
)
# Without these there can be no user namespace: /proc, /sys and queues belong to the owner of their
# namespace, and ids without a mapping belong to nobody inside.
BELOW_USER = {"mount-attributes", "pid-namespace", "net-namespace", "ipc-namespace"}


def left_out(guards):
    """The text of the file `off` for unguard.c."""
    off = set(guards)
    return " ".join(sorted(off | {"user-namespace"} if off & BELOW_USER else off))


class GuardedStage(NativeStage):
    """A daemon whose `agentix-init` is unguard.c, with the real one beside it."""

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
        """Makes a sandbox for the attempt without these guards."""
        (self.place / "off").write_text(left_out(guards))
        return self.ready(mounts=mounts_for(self.world, attempt))

    def attempt(self, box, attempt):
        run = self.client.run(box, "/probe", attempt.name, self.world.argument(attempt, **PLACES))
        return run.exit_code, said(self, run)

    def succeeds(self, attempt, off):
        """Whether the attempt succeeds without these guards, and its output. It gets its own
        sandbox, because it may change it."""
        with self.device_more() if "devices" in off else contextlib.nullcontext():
            box = self.without(off, attempt)
            status, output = self.attempt(box, attempt)
            self.client.deleted(box)
        return status == 0, output

    @contextlib.contextmanager
    def device_more(self):
        """Adds a device to the one /dev that all sandboxes of a daemon share."""
        device = self.daemon.place.run / "dev" / "kmsg"
        os.mknod(device, 0o020600, os.makedev(1, 11))
        yield
        device.unlink()

    def is_held(self, attempt, off):
        """Whether the attempt is stopped, and its output. The sandbox is kept for later attempts,
        because an attempt that is stopped changes nothing."""
        kind = off, attempt.writes
        if kind not in self.kept:
            self.kept[kind] = self.without(off, attempt)
        status, output = self.attempt(self.kept[kind], attempt)
        return status == 1, output
