"""The setuid and setgid bits in native sandboxes with writable mounts: where they can be set."""

import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from agxtest import images
from agxtest.protos import agbox
from inside import LEFT, said, writable_mount_of

DEBIAN = "agx-debian:1"
# dpkg and the programs that it needs; their libraries are copied too.
PROGRAMS = (
    *("/bin/bash", "/bin/cat", "/bin/rm", "/bin/sh", "/bin/stat", "/bin/tar", "/bin/chmod"),
    *("/bin/mkdir",),
    *("/usr/bin/dpkg", "/usr/bin/dpkg-deb", "/usr/bin/dpkg-query", "/usr/bin/dpkg-split"),
    *("/usr/bin/diff", "/sbin/ldconfig", "/sbin/start-stop-daemon"),
)
# The modes in Debian's packages sudo, cron, openssh-client and base-files.
MODES = {
    "usr/bin/sudo": 0o4755,
    "usr/bin/crontab": 0o2755,
    "usr/bin/ssh-agent": 0o2755,
    "usr/bin/su": 0o4755,
    "usr/bin/plain": 0o755,
    "var/mail": 0o2775,
    "var/tmp": 0o1777,
}
CONTROL = """Package: agx-suid
Version: 1
Architecture: all
Maintainer: nobody <nobody@localhost>
Description: files with bits
"""


def ran(stage, box, *command):
    """Runs a command, which must succeed, and returns its output."""
    run = stage.client.run(box, *command)
    assert run.exit_code == 0, said(stage, run)
    return said(stage, run)


def filters_of(stage, box):
    return ran(stage, box, "grep", "Seccomp_filters", "/proc/1/status").split()[1]


def mode_of(path):
    return path.lstat().st_mode & 0o7777


@pytest.fixture(name="emptied", autouse=True)
def fixture_emptied(world):
    yield
    for path in world.left.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_calls_do_what_was_asked_in_what_is_the_sandbox_s_own(stage, writing_box):
    assert "OUT" in ran(stage, writing_box, "/probe", "suid-calls", LEFT)


def test_calls_end_when_whoever_makes_them_is_killed(stage, writing_box):
    assert "OUT" in ran(stage, writing_box, "/probe", "suid-killed", LEFT)


def test_whoever_makes_a_call_that_is_stopped_holds_its_caller_alone(stage, writing_box):
    assert "OUT" in ran(stage, writing_box, "/probe", "suid-stopped", LEFT)


def test_root_of_the_sandbox_that_kills_all_it_can_has_the_bits_set_afterwards(stage, world):
    box = stage.ready(mounts=[writable_mount_of(world)])
    stage.client.run(box, "sh", "-c", "kill -9 -1")
    ran(stage, box, "sh", "-c", "for n in 9 11 19; do kill -$n $(ls /proc/1/task) || true; done")
    ran(stage, box, "sh", "-c", "echo x >/f && chmod 4755 /f && test -u /f")
    stage.client.deleted(box)


def test_file_of_a_mount_keeps_its_other_bits_and_is_refused_those(stage, writing_box, world):
    script = f"""
        echo x >{LEFT}/f && chmod 750 {LEFT}/f && mkdir -m 1777 {LEFT}/d || exit 1
        chmod 4755 {LEFT}/f 2>/refused && exit 2
        grep -q 'Operation not permitted' /refused || exit 3
        cd {LEFT} && chmod g+s d 2>/refused && exit 4
        touch g && cp -p g h && mv h i
    """
    ran(stage, writing_box, "sh", "-c", script)
    assert mode_of(world.left / "f") == 0o750
    assert mode_of(world.left / "d") == 0o1777
    assert (world.left / "i").exists()


def test_a_mount_that_allows_it_has_setuid_files_beside_one_that_does_not(stage, world):
    allowed = writable_mount_of(world) | {"target": "/allowed", "suid": "MOUNT_SUID_ALLOW"}
    box = stage.ready(mounts=[allowed, writable_mount_of(world)])
    ran(stage, box, "sh", "-c", "echo x >/allowed/a && chmod 4755 /allowed/a")
    assert mode_of(world.left / "a") == 0o4755
    assert stage.runs(box, "chmod", "4711", f"{LEFT}/a") == 1
    assert mode_of(world.left / "a") == 0o4755
    stage.client.deleted(box)


def test_sandbox_that_may_not_write_to_the_host_or_is_allowed_to_has_no_guard(stage, box, world):
    allowed = writable_mount_of(world) | {"suid": "MOUNT_SUID_ALLOW"}
    free = stage.ready(mounts=[allowed])
    for each in (box, free):
        assert filters_of(stage, each) == "1"
    guarded = stage.ready(mounts=[writable_mount_of(world)])
    assert filters_of(stage, guarded) == "2"
    for each in (free, guarded):
        stage.client.deleted(each)


def test_guard_is_there_again_after_a_stop(stage, world):
    box = stage.ready(mounts=[writable_mount_of(world)])
    stage.client.box.StopSandbox(sandbox_id=box)
    newest = stage.client.until(box, agbox().SANDBOX_STOPPED)[-1].sequence
    stage.client.box.ResumeSandbox(sandbox_id=box)
    stage.client.until(box, agbox().SANDBOX_READY, after=newest)
    assert stage.runs(box, "sh", "-c", f"echo x >{LEFT}/f; chmod 4755 {LEFT}/f") == 1
    assert mode_of(world.left / "f") & 0o6000 == 0
    ran(stage, box, "sh", "-c", "echo x >/f && chmod 4755 /f")
    stage.client.deleted(box)


# ---- complete programs


def libraries(program):
    told = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(/\S+) \(0x", told)


def debian():
    """An image with dpkg and tar of this machine."""
    tree = images.base()
    wanted = {*PROGRAMS, *(x for p in PROGRAMS for x in libraries(p))}
    places = {parent for path in wanted for parent in Path(path.lstrip("/")).parents}
    places |= {Path("var"), *(Path("var", "lib", "dpkg", *more) for more in ((), ("info",)))}
    places |= {Path("var/lib"), Path("var/lib/dpkg/updates"), Path("usr")}
    tree.directory(*(str(p) for p in sorted(places - {Path(), Path("etc")})))
    for path in sorted(wanted):
        tree.copy(path)
    tree.file("var/lib/dpkg/status", "")
    return tree.finish()


@pytest.fixture(name="debian_box", scope="module")
def fixture_debian_box(stage, world):
    subprocess.run(
        [os.environ["AGENTIX"], "image", "import", "-", "--name", DEBIAN],
        input=debian(),
        env=stage.daemon.env,
        check=True,
    )
    return stage.client.ready(image=DEBIAN, mounts=[writable_mount_of(world)])


def root_with_bits(top):
    for name, mode in MODES.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.startswith("var"):
            path.mkdir()
        else:
            path.write_text("x")
        path.chmod(mode)
    return top


def modes_inside(stage, box, top):
    script = f"cd {top} && stat -c '%a %n' {' '.join(MODES)}"
    lines = ran(stage, box, "bash", "-c", script).splitlines()
    return {name: int(mode, 8) for mode, name in (line.split() for line in lines)}


def test_dpkg_installs_programs_with_the_bits_beside_a_writable_mount(
    stage, debian_box, world, tmp_path
):
    """As apt-get does after its downloads; sandboxes of tests have no network."""
    top = root_with_bits(tmp_path / "package")
    (top / "DEBIAN").mkdir()
    (top / "DEBIAN" / "control").write_text(CONTROL)
    script = top / "DEBIAN" / "postinst"
    script.write_text("#!/bin/sh\nset -e\nchmod u+s /usr/bin/plain\n")
    script.chmod(0o755)
    package = str(world.left / "agx-suid.deb")
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", top, package], check=True)
    env = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"
    ran(stage, debian_box, "bash", "-c", f"{env} dpkg -i {LEFT}/agx-suid.deb 2>&1")
    assert modes_inside(stage, debian_box, "/") == MODES | {"usr/bin/plain": 0o4755}


def test_tar_unpacks_a_root_beside_a_writable_mount_and_not_into_it(
    stage, debian_box, world, tmp_path
):
    top = root_with_bits(tmp_path / "root")
    with tarfile.open(world.left / "root.tar", "w") as tar:
        tar.add(top, arcname=".")
    unpack = f"tar -xp --same-owner -f {LEFT}/root.tar -C"
    ran(stage, debian_box, "bash", "-c", f"mkdir /unpacked && {unpack} /unpacked 2>&1")
    assert modes_inside(stage, debian_box, "/unpacked") == MODES
    (world.left / "into").mkdir(mode=0o777)
    assert stage.runs(debian_box, "bash", "-c", f"{unpack} {LEFT}/into") != 0
    for name, mode in MODES.items():
        assert mode_of(world.left / "into" / name) & 0o6000 == 0, (name, oct(mode))
