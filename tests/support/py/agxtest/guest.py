"""A virtual machine for tests: Debian's kernel and its modules, with control groups of version 2,
in software emulation (qemu-system-x86_64).

    guest = Guest(tmp_path, programs=["/path/of/test_cgroup"])
    results = guest.run({"cgroup": "test_cgroup"})
    results["cgroup"].status, results["cgroup"].output

Its root is an ext4 image with busybox, the programs, their libraries, and the modules that
sandboxes need, which the kernel loads on demand. Every run boots the machine (about ten seconds on
an idle host) and runs the commands one after the other, as root, in busybox's shell; there is also
a `user`. Nothing is installed on the host, and no privilege is needed.

The output arrives on serial lines, which are files on the host: the console, and the output of the
commands, with a marker line before and after each.
"""

import os
import re
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from agxtest import linux

BUSYBOX = Path("/bin/busybox")
QEMU = "qemu-system-x86_64"
# The parts of the kernel's modules that the guest needs; the rest are drivers of other hardware.
MODULES = (
    "arch/x86/crypto",
    "crypto",
    "drivers/block/loop.ko",
    "drivers/block/virtio_blk.ko",
    "drivers/net/dummy.ko",
    "drivers/net/macvlan.ko",
    "drivers/net/tun.ko",
    "drivers/net/veth.ko",
    "drivers/virtio",
    "fs",
    "lib",
    "net",
)
BOOT_MODULES = ("virtio_pci", "virtio_blk", "quota_v2")
MARK = "@@agx"

INITRAMFS_INIT = f"""#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /root
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox modprobe -a {" ".join(BOOT_MODULES)}
/bin/busybox mount -t ext4 -o prjquota /dev/vda /root
exec /bin/busybox switch_root /root /sbin/guest
"""

# The mounts are those of Debian, as far as they matter here; /tmp is on the disk. Opening a device
# node makes the kernel load its module. nf_tables is loaded first, because two programs ask for
# packet filters at a time, and busybox's modprobe, unlike Debian's, does not wait for a module that
# another one is loading.
GUEST_INIT = f"""#!/bin/busybox sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /dev/net
mknod /dev/loop-control c 10 237
mknod /dev/net/tun c 10 200
mount -t devpts -o gid=5,mode=620,ptmxmode=000 devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /run
chmod 1777 /tmp
mount -t cgroup2 -o nsdelegate,memory_recursiveprot cgroup2 /sys/fs/cgroup
modprobe nf_tables
ip link set lo up
hostname guest
stty -F /dev/ttyS1 raw
for each in /commands/*; do
    echo "{MARK} begin ${{each##*/}}"
    (cd /tmp && exec setsid sh "$each" </dev/null 2>&1)
    status=$?
    echo
    echo "{MARK} end ${{each##*/}} $status"
done >/dev/ttyS1
sync
poweroff -f
"""


class CannotRun(Exception):
    """The guest cannot run here; the text gives the reason."""


@dataclass
class Result:
    status: int
    output: str


def kernel_tree():
    """The directory into which tools/bootstrap unpacked Debian's kernel."""
    place = Path(os.environ["AGX_PACKAGES"]) / "linux-image-cloud-amd64"
    if not list(place.glob("boot/vmlinuz-*")):
        raise CannotRun(f"no kernel in {place}: run tools/bootstrap")
    return place


def check_machine():
    if os.uname().machine != "x86_64":
        raise CannotRun("the guest is an x86_64")
    for name in (QEMU, "mkfs.ext4"):
        if not find(name):
            raise CannotRun(f"no {name}")
    if not BUSYBOX.exists():
        raise CannotRun("no busybox")


def find(name):
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def copy(source, root, inside=None):
    target = root / str(inside or source).lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    return target


def copy_program(source, root, inside=None):
    """A program and the libraries that the loader would use."""
    copy(source, root, inside)
    listed = subprocess.run(["ldd", source], capture_output=True, text=True)
    for library in re.findall(r"(?:=> |^\s)(/\S+) \(0x", listed.stdout, re.MULTILINE):
        copy(library, root)


def write_script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def put_busybox(root):
    copy(BUSYBOX, root)
    names = subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True)
    for name in names.stdout.split():
        if name != "busybox":
            (root / "bin" / name).symlink_to("busybox")
    (root / "sbin").mkdir()
    (root / "sbin/modprobe").symlink_to("../bin/busybox")  # the program that the kernel calls


def put_modules(root, tree, parts):
    """Copies the modules, and the lists by which modprobe finds them."""
    (version,) = (tree / "lib/modules").iterdir()
    for part in parts:
        for each in sorted((version / "kernel" / part).rglob("*.ko")) or [
            version / "kernel" / part
        ]:
            copy(each, root, each.relative_to(tree))
    for each in version.glob("modules.*"):
        copy(each, root, each.relative_to(tree))
    subprocess.run([BUSYBOX, "depmod", "-b", root, version.name], check=True)


def needed_by(tree, names):
    """The files of these modules and of their dependencies."""
    (version,) = (tree / "lib/modules").iterdir()
    files = {each.stem.replace("-", "_"): each for each in version.rglob("*.ko")}
    found, left = {}, list(names)
    while left:
        name = left.pop().replace("-", "_")
        if name in files and name not in found:
            found[name] = files[name].relative_to(version / "kernel")
            depends = re.search(rb"\0depends=([^\0]*)\0", files[name].read_bytes())
            left += depends[1].decode().split(",") if depends else []
    return sorted(map(str, found.values()))


class Guest:
    """Makes the images in `directory`; run() boots them."""

    def __init__(self, directory, programs=(), files=None):
        """The guest finds `programs` by name; `files` maps a path inside to a path here."""
        check_machine()
        self.directory = Path(directory)
        self.tree = kernel_tree()
        self.root = self.directory / "root"
        self.make_initramfs()
        self.make_root(programs, files or {})

    def make_initramfs(self):
        root = self.directory / "initramfs"
        copy(BUSYBOX, root)
        put_modules(root, self.tree, needed_by(self.tree, BOOT_MODULES))
        write_script(root / "init", INITRAMFS_INIT)
        names = "\n".join(str(each.relative_to(root)) for each in sorted(root.rglob("*")))
        packed = subprocess.run(
            [BUSYBOX, "cpio", "-o", "-H", "newc"],
            cwd=root,
            input=names.encode(),
            capture_output=True,
            check=True,
        )
        (self.directory / "initramfs.img").write_bytes(packed.stdout)

    def make_root(self, programs, files):
        for name in ("proc", "sys", "dev", "run", "tmp", "root", "etc", "data", "commands"):
            (self.root / name).mkdir(parents=True)
        put_busybox(self.root)
        put_modules(self.root, self.tree, MODULES)
        for program in programs:
            copy_program(program, self.root, f"/bin/{Path(program).name}")
        for inside, source in files.items():
            copy_program(source, self.root, inside)
        users = "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/tmp:/bin/sh\n"
        (self.root / "etc/passwd").write_text(users)
        (self.root / "etc/group").write_text("root:x:0:\ntty:x:5:\nuser:x:1000:\n")
        write_script(self.root / "sbin/guest", GUEST_INIT)

    def make_disk(self, commands):
        shutil.rmtree(self.root / "commands")
        for index, (name, script) in enumerate(commands.items()):
            write_script(self.root / "commands" / f"{index:03d}-{name}", script)
        disk = self.directory / "disk.img"
        disk.unlink(missing_ok=True)
        # With project quotas, which an administrator has to turn on.
        made = subprocess.run(
            [
                *(find("mkfs.ext4"), "-q", "-d", self.root, "-O", "quota,project"),
                *("-E", "root_owner=0:0,quotatype=usrquota:grpquota:prjquota"),
                *("-m", "0", disk, "1G"),
            ],
            capture_output=True,
            text=True,
        )
        if made.returncode != 0:
            raise RuntimeError(f"mkfs.ext4: {made.stderr}")
        return disk

    def run(self, commands, seconds=1000, memory="512M"):
        """The result of each command; raises if the guest did not finish."""
        disk = self.make_disk(commands)
        console, output = self.directory / "console.log", self.directory / "output.log"
        (kernel,) = self.tree.glob("boot/vmlinuz-*")
        arguments = [
            *(QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
            *("-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", memory),
            *("-kernel", kernel, "-initrd", self.directory / "initramfs.img"),
            *("-append", "console=ttyS0 quiet loglevel=4 panic=-1 rdinit=/init"),
            *("-drive", f"file={disk},if=virtio,format=raw,cache=unsafe"),
            *("-serial", f"file:{console}", "-serial", f"file:{output}"),
        ]
        try:
            ended = subprocess.run(
                arguments,
                timeout=seconds,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                preexec_fn=linux.die_with_parent,
            )
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"no end after {seconds} s: {self.tail(console, output)}") from None
        results = read_results(output.read_text(errors="replace") if output.exists() else "")
        if ended.returncode != 0 or list(results) != list(commands):
            raise RuntimeError(f"{ended.stderr}\n{self.tail(console, output)}")
        return results

    @staticmethod
    def tail(*files):
        texts = [each.read_text(errors="replace")[-3000:] for each in files if each.exists()]
        return "\n---- output\n".join(texts)


def read_results(text):
    pattern = rf"^{MARK} begin \d+-(\S+)\n(.*?)\n{MARK} end \S+ (\d+)$"
    found = re.findall(pattern, text, re.MULTILINE | re.DOTALL)
    return {name: Result(int(status), output) for name, output, status in found}
