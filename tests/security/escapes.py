"""Attempts of code in a sandbox, and the guards that stop them: the table of SECURITY.md in code.

Each attempt is a name from tests/security/probe.h and its argument. `{name}` in an argument is an
object outside the sandbox: see World.
"""

import ctypes
import dataclasses
import os
import random
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

PROBE = os.environ["AGX_PROBE"]
SECRET = "nobody inside should read this"
ALL = ("docker", "native")


@dataclasses.dataclass(frozen=True)
class Attempt:
    name: str
    argument: str = ""
    backends: tuple = ALL
    # The attempt cannot succeed on kernels without this path, even without guards.
    needs: str = ""
    # In a native sandbox each of these stops the attempt by itself, and nothing else does: see
    # guards.py. Empty if no guard can be removed, because the attempt finds nothing to work on.
    guards: tuple = ()
    # Needed if several attempts use one name of the probe.
    label: str = ""
    # The attempt runs in a sandbox that may write to a directory of the host.
    writes: bool = False

    def __str__(self):
        return self.label or self.name


# Common combinations of guards.
THRICE = ("seccomp", "capabilities", "user-namespace")
MOUNTING = ("seccomp", "capabilities")
INIT = ("dumpable", "user-namespace")
NET = ("net-namespace",)
IPC = ("ipc-namespace",)
# Calls by which a file gets the setuid or setgid bit.
SUID_CALLS = (
    *("chmod", "setgid", "directory", "fchmod", "fchmodat", "fchmodat2", "proc", "creat", "open"),
    *("openat", "openat2", "tmpfile", "mknod", "mknodat"),
    *("swapped-link", "swapped-descriptor", "swapped-text"),
)

ATTEMPTS = [
    Attempt("host-file", "{secret}", guards=("root",)),
    Attempt("host-file-by-symlink", "{secret}", guards=("root",)),
    Attempt("host-file-by-dotdot", "{secret}", guards=("root",)),
    Attempt("host-file-by-proc", "{secret}", guards=("root",)),
    Attempt("host-file-by-chroot", "{secret}", guards=("root",)),
    # A declared mount shows files of the host, but gives no access beyond itself.
    Attempt("host-file", "{link}", label="mounted-link", guards=("root",)),
    Attempt(
        "image-device",
        "{mounted_device}",
        label="mounted-device",
        guards=("mount-attributes", "capabilities"),
    ),
    Attempt(
        "setuid",
        "{mounted_setuid}",
        label="mounted-setuid",
        guards=("mount-attributes", "no-new-privs"),
    ),
    Attempt("write", "{kept}", label="mounted-read-only", guards=("mount-attributes",)),
    Attempt("host-file", "{shm_file}", label="host-shm-file", guards=("shm",)),
    Attempt("log-file"),
    Attempt("file-handle", guards=THRICE),
    Attempt("mount", guards=MOUNTING),
    Attempt("mount-bind", guards=MOUNTING),
    Attempt("mount-proc", guards=MOUNTING),
    Attempt("fsopen", guards=MOUNTING),
    Attempt("open-tree", guards=MOUNTING),
    Attempt("unmask", guards=MOUNTING),
    Attempt("remount", guards=MOUNTING),
    Attempt("pivot-root", guards=MOUNTING),
    Attempt("mknod", guards=("capabilities", "user-namespace")),
    Attempt("image-device", "{device}"),
    Attempt("host-device", guards=("devices",)),
    # Where the daemon keeps layers. An engine mounts them by their paths on the host.
    Attempt("host-paths", "/agentix/images/", backends=("native",)),
    Attempt("setuid", "{setuid}", guards=("no-new-privs",)),
    Attempt("inherited-fd", guards=("descriptors",)),
    Attempt("bpf", guards=THRICE),
    Attempt("add-key", guards=("seccomp",)),
    Attempt("keyctl", guards=("seccomp",)),
    Attempt("userfaultfd", guards=THRICE),
    Attempt("perf", guards=THRICE),
    # The engine's own filter allows it in 20.10.
    Attempt("io-uring", backends=("native",), guards=("seccomp",)),
    # The engine's own filter lets it through.
    Attempt("aio", backends=("native",), guards=("seccomp",)),
    Attempt("init-module", needs="/proc/modules", guards=THRICE),
    Attempt("finit-module", needs="/proc/modules", guards=THRICE),
    Attempt("kexec", needs="/sys/kernel/kexec_loaded", guards=THRICE),
    Attempt("adjtimex", guards=("capabilities", "user-namespace")),
    Attempt("swapon", guards=THRICE),
    Attempt("acct", guards=THRICE),
    Attempt("kernel-log", guards=THRICE),
    Attempt("reboot", guards=MOUNTING),
    Attempt("ioperm", needs="/dev/port", guards=THRICE),
    Attempt("fanotify", guards=THRICE),
    Attempt("personality", guards=("seccomp",)),
    # The engine's filter covers both system call tables.
    Attempt("32-bit-call", backends=("native",), guards=("seccomp",)),
    Attempt("user-namespace", guards=("seccomp",)),
    Attempt("clone3", guards=("seccomp",)),
    Attempt("setns", guards=THRICE),
    Attempt("hostname", guards=MOUNTING),
    Attempt("capabilities", guards=("capabilities",)),
    Attempt("sysrq", needs="/proc/sysrq-trigger", guards=("read-only", "user-namespace")),
    Attempt("core-pattern", guards=("read-only", "user-namespace")),
    Attempt("sysctl", guards=("read-only", "capabilities")),
    Attempt("kcore", needs="/proc/kcore", guards=("masks", "capabilities", "user-namespace")),
    Attempt("timer-list", guards=("masks", "user-namespace")),
    Attempt("sysfs", guards=("sys", "user-namespace")),
    Attempt("cgroup", guards=("sys", "user-namespace")),
    Attempt("ptrace", "1", guards=INIT),
    Attempt("pidfd-getfd", "1", guards=("seccomp", "dumpable", "user-namespace")),
    Attempt("vm-read", "1", guards=INIT),
    Attempt("environ", "1", guards=("dumpable", "user-namespace", "environment")),
    Attempt("maps", "1", guards=INIT),
    Attempt("mem", "1", guards=INIT),
    Attempt("fds", "1", guards=INIT),
    Attempt("exe", "1", guards=INIT),
    Attempt("exe-write", "1", guards=INIT),
    # As with aio.
    Attempt("prlimit", "1", backends=("native",), guards=("seccomp",)),
    Attempt("signal", "{pid}", guards=("pid-namespace",)),
    Attempt("raw-socket", guards=("capabilities",)),
    Attempt("packet-socket", guards=MOUNTING),
    # The engine's own filter allows it, as with io_uring.
    Attempt("vsock", backends=("native",), guards=("seccomp",)),
    Attempt("interface", guards=("capabilities",)),
    Attempt("audit", guards=("capabilities", "user-namespace")),
    Attempt("connect", "127.0.0.1:{port}", label="connect-loopback", guards=NET),
    Attempt("connect", "{host}:{port}", label="connect-host", guards=NET),
    Attempt("connect", "{neighbour}:{neighbour_port}", label="connect-neighbour", guards=NET),
    Attempt("abstract-socket", "{abstract}", guards=NET),
    Attempt("unix-sockets", guards=NET),
    Attempt("sysv-shm", "{ipc_key}", guards=IPC),
    Attempt("sysv-messages", "{ipc_key}", guards=IPC),
    Attempt("message-queue", "{queue}", guards=IPC),
    # One more than AGX_NATIVE_PTYS. An engine's containers have no limit.
    Attempt("ptys", "1025", backends=("native",), guards=("ptys",)),
    # A setuid file that is left in a mount gives its power to users who run it on the host.
    *(Attempt(f"left-{how}", "{left}", guards=("suid",), writes=True) for how in SUID_CALLS),
    Attempt("left-capabilities", "{left}", guards=("capabilities",), writes=True),
]


class SharedMemory:
    """Shared memory of the host: a System V segment, two queues, a file in /dev/shm."""

    CREATE, REMOVE = 0o1000, 0

    def __init__(self):
        # Tests that run at the same time share these names, even if they have separate pids.
        self.key = random.SystemRandom().randrange(1, 1 << 31)
        self.queue = f"/agx-probe-{self.key}"
        self.file = Path(f"/dev/shm/agx-probe-{self.key}")
        self.file.write_text(SECRET)
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.segment = self.made(self.libc.shmget(self.key, 4096, self.CREATE | 0o666))
        self.messages = self.made(self.libc.msgget(self.key, self.CREATE | 0o666))
        self.made(self.libc.mq_open(self.queue.encode(), os.O_CREAT | os.O_RDWR, 0o666, None))

    @staticmethod
    def made(number):
        assert number >= 0, os.strerror(ctypes.get_errno())
        return number

    def close(self):
        self.libc.shmctl(self.segment, self.REMOVE, None)
        self.libc.msgctl(self.messages, self.REMOVE, None)
        self.libc.mq_unlink(self.queue.encode())
        self.file.unlink()


class World:
    """Objects outside the sandbox that attempts try to reach: a secret, a process, a server."""

    HOST = "198.51.100.1"  # an address of the host

    def __init__(self):
        # Not a directory of pytest: each start of any pytest closes those to other users.
        self.top = top = Path(tempfile.mkdtemp(prefix="agx-outside-"))
        top.chmod(0o711)
        secret, self.shared = top / "secret", top / "shared"
        secret.write_text(SECRET)
        self.shared.mkdir()
        self.shared.chmod(0o755)
        for place in (top, self.shared):
            shutil.copy(PROBE, place / "probe-setuid")
            (place / "probe-setuid").chmod(0o4755)
            os.mknod(place / "device", 0o020666, os.makedev(1, 11))
        self.left = top / "left"
        self.left.mkdir()
        (self.shared / "link").symlink_to(secret)
        (self.shared / "kept").write_text("as it was")
        (self.shared / "kept").chmod(0o666)
        subprocess.run(["ip", "addr", "add", f"{self.HOST}/32", "dev", "lo"], check=True)
        # Far above the pid of any process in a sandbox.
        Path("/proc/sys/kernel/ns_last_pid").write_text("30000")
        self.process = subprocess.Popen(["sleep", "1000000"])
        self.listener = socket.create_server(("0.0.0.0", 0), backlog=128)
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind(f"\0agx-probe-{os.getpid()}")
        self.abstract.listen(128)
        self.memory = SharedMemory()
        self.names = {
            "secret": secret,
            "setuid": top / "probe-setuid",
            "device": top / "device",
            "link": self.shared / "link",
            "kept": self.shared / "kept",
            "left": self.left,
            "mounted_setuid": self.shared / "probe-setuid",
            "mounted_device": self.shared / "device",
            "pid": self.process.pid,
            "port": self.listener.getsockname()[1],
            "host": self.HOST,
            "abstract": self.abstract.getsockname()[1:].decode(),
            "shm_file": self.memory.file,
            "ipc_key": self.memory.key,
            "queue": self.memory.queue,
        }

    def argument(self, attempt, **inside):
        """The argument with its names replaced; `inside` has the names that differ in a sandbox."""
        return attempt.argument.format(**(self.names | inside))

    def close(self):
        self.process.kill()
        self.process.wait()
        self.listener.close()
        self.abstract.close()
        self.memory.close()
        subprocess.run(["ip", "addr", "del", f"{self.HOST}/32", "dev", "lo"], check=False)
        shutil.rmtree(self.top)


def unguarded(world, attempt):
    """Runs the attempt as root of unguarded namespaces; returns its exit status and its output."""
    if attempt.name == "host-paths":
        # The root of the machine is in every list of mounts.
        command = [PROBE, attempt.name, " / "]
    else:
        command = [PROBE, attempt.name, world.argument(attempt)]
    extra = os.open("/dev/null", os.O_RDONLY)
    try:
        # Its output is a file, like a log.
        with tempfile.TemporaryFile("w+") as log:
            done = subprocess.run(
                ["unshare", "--mount", "--uts", "--cgroup", *command],
                pass_fds=[extra],
                stdout=log,
                check=False,
                timeout=60,
            )
            log.seek(0)
            return done.returncode, log.read()
    finally:
        os.close(extra)
