"""Images for tests, made from files of the machine, without a registry.

    scratch   one static program, no shell
    busybox   a shell and its tools, no library
    glibc     dash on the machine's libc
    musl      a program on another libc
    agbox     follows the runtime contract of agents-sandbox: its entrypoint makes the user `agbox`
              with HOST_UID and HOST_GID, gives it /workspace and switches to it

The name of each is agx-NAME:1.
"""

import hashlib
import io
import json
import os
import subprocess
import tarfile
from pathlib import Path

BUSYBOX = Path("/bin/busybox")
# Ends at once on TERM.
IDLE = ["sh", "-c", "trap 'exit 0' TERM; sleep 1000000 & wait"]

# It may run again after a restart of the container, whose passwd it has already changed.
AGBOX_ENTRYPOINT = """#!/bin/sh
set -e
uid=${HOST_UID:-1000} gid=${HOST_GID:-1000}
sleep "${ENTRYPOINT_DELAY:-0}" # for tests of the time before the user exists
if ! grep -q '^agbox:' /etc/passwd; then
    grep -q "^[^:]*:[^:]*:$gid:" /etc/group || echo "agbox:x:$gid:" >>/etc/group
    for group in $(echo "$AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS" | tr , ' '); do
        echo "extra$group:x:$group:agbox" >>/etc/group
    done
    echo "agbox:x:$uid:$gid::/home/agbox:/bin/sh" >>/etc/passwd
    chown "$uid:$gid" /home/agbox /workspace
fi
export HOME=/home/agbox
[ "$uid" = 0 ] && exec "$@"
exec su -p agbox -s /bin/sh -c 'exec "$0" "$@"' -- "$@"
"""


class Tree:
    """The files of an image."""

    def __init__(self):
        self.bytes = io.BytesIO()
        self.tar = tarfile.TarFile(fileobj=self.bytes, mode="w")

    def add(self, path, kind, mode, data=b"", link=""):
        entry = tarfile.TarInfo(path.lstrip("/"))
        entry.type, entry.mode, entry.size, entry.linkname = kind, mode, len(data), link
        self.tar.addfile(entry, io.BytesIO(data))

    def directory(self, *paths, mode=0o755):
        for path in paths:
            self.add(path, tarfile.DIRTYPE, mode)

    def file(self, path, data, mode=0o644):
        self.add(path, tarfile.REGTYPE, mode, data.encode() if isinstance(data, str) else data)

    def link(self, path, target):
        self.add(path, tarfile.SYMTYPE, 0o777, link=target)

    def device(self, path, major, minor):
        """Adds a character device, as a hostile image may contain."""
        entry = tarfile.TarInfo(path)
        entry.type, entry.mode = tarfile.CHRTYPE, 0o666
        entry.devmajor, entry.devminor = major, minor
        self.tar.addfile(entry)

    def copy(self, source, path=None):
        self.file(path or str(source), Path(source).read_bytes(), 0o755)

    def finish(self):
        self.tar.close()
        return self.bytes.getvalue()


def base():
    tree = Tree()
    tree.directory("etc", "root", "dev", "proc", "sys", "home", "home/app")
    tree.directory("tmp", mode=0o1777)
    tree.file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\napp:x:1500:1500::/home/app:/bin/sh\n")
    tree.file("etc/group", "root:x:0:\napp:x:1500:\nextra:x:77:app\n")
    return tree


def busybox(tree=None):
    tree = tree or base()
    tree.directory("bin")
    tree.copy(BUSYBOX, "bin/busybox")
    listed = subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout
    for tool in listed.split():
        if tool != "busybox":
            tree.link(f"bin/{tool}", "busybox")
    return tree


def agbox():
    tree = busybox()
    tree.directory("home/agbox", "workspace", "var", "var/cache", "var/cache/apt", "usr", "usr/bin")
    tree.directory("var/log")
    tree.file("entrypoint.sh", AGBOX_ENTRYPOINT, 0o755)
    return tree


def program(name):
    """A test program of the build (tests/integration/init_prog.c), found in AGX_PROGRAMS."""
    return Path(os.environ["AGX_PROGRAMS"]) / name


def glibc():
    tree = base()
    tree.directory("bin", "lib64", "lib", "lib/x86_64-linux-gnu")
    tree.copy("/lib64/ld-linux-x86-64.so.2")
    tree.copy("/lib/x86_64-linux-gnu/libc.so.6")
    tree.copy("/bin/dash", "bin/sh")
    tree.copy(program("init_prog_glibc"), "prog")
    return tree


def musl():
    tree = base()
    tree.directory("lib")
    tree.copy("/lib/ld-musl-x86_64.so.1")
    tree.copy(program("init_prog_musl"), "prog")
    return tree


def scratch():
    tree = Tree()
    tree.copy(program("init_prog"), "prog")
    return tree


TREES = {
    "agbox": (agbox, ['ENTRYPOINT ["/entrypoint.sh"]']),
    "busybox": (busybox, [f"CMD {json.dumps(IDLE)}"]),
    "glibc": (glibc, []),
    "musl": (musl, []),
    "scratch": (scratch, []),
}


def archive(name):
    """The image as `docker save` writes it."""
    tree, changes = TREES[name]
    config = {}
    for change in changes:
        key, _, value = change.partition(" ")
        config[{"CMD": "Cmd", "ENTRYPOINT": "Entrypoint"}[key]] = json.loads(value)
    return pack(name, tree(), config)


def pack(name, tree, config):
    """The same for any tree, named agx-NAME:1."""
    layer = tree.finish()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [digest(layer)]},
    }
    whole = Tree()
    whole.file("config.json", json.dumps(config))
    whole.file("layer.tar", layer)
    manifest = [{"Config": "config.json", "RepoTags": [f"agx-{name}:1"], "Layers": ["layer.tar"]}]
    whole.file("manifest.json", json.dumps(manifest))
    return whole.finish()


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def require(engine, name):
    """Imports the image if the engine lacks it, and returns its name."""
    full = f"agx-{name}:1"
    if not engine.run("images", "-q", full).strip():
        tree, changes = TREES[name]
        engine.load(full, tree().finish(), changes)
    return full
