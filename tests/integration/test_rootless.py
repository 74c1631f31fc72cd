"""agentixd with the native backend, started by an ordinary user."""

import os
import tempfile
from pathlib import Path

import pytest
import tool_cases as cases
from agxtest.server import wait_for
from rootless_fixtures import *  # noqa: F403
from rootless_fixtures import SUB, SUBS, USER, RootlessPlace, mounted, processes

pytestmark = pytest.mark.deadline(120)


def owned_by_subs(path):
    try:
        return any(each.lstat().st_uid in SUBS for each in path.rglob("*"))
    except FileNotFoundError:  # it is being removed
        return True


def test_a_sandbox_lives_through_stop_crash_and_restart_and_leaves_nothing(stage):
    stage.create("web-1")
    script = "id -u; hostname; echo kept > /root/f; touch /root/g; chown 7:8 /root/g"
    assert stage.shell("web-1", script) == "0\nweb-1\n"
    upper = stage.native / "boxes" / "web-1" / "0" / "fs" / "upper"
    assert (upper / "root" / "f").stat().st_uid == SUB
    assert (upper / "root" / "g").stat().st_uid == SUB + 7
    stage.daemon.restart()
    assert stage.shell("web-1", "cat /root/f; stat -c %u:%g /root/g") == "kept\n7:8\n"
    stage.ok("sandbox", "stop", "web-1")
    assert stage.run("exec", "run", "web-1", "--", "true").returncode != 0
    stage.ok("sandbox", "resume", "web-1")
    assert stage.shell("web-1", "cat /root/f; stat -c %u:%g /root/g") == "kept\n7:8\n"
    stage.ok("sandbox", "delete", "web-1")
    wait_for(lambda: not owned_by_subs(stage.native), "its files are gone")
    stage.daemon.stop()
    assert not (stage.daemon.place.data / "rootless").exists()


def test_sandboxes_outlive_a_daemon_that_is_stopped(stage):
    stage.create("web-1")
    stage.daemon.stop()
    assert [name for _, name in processes()].count("agentix-init") == 2
    stage.daemon.start()
    assert stage.shell("web-1", "echo there") == "there\n"
    stage.ok("sandbox", "delete", "web-1")


def test_files_of_the_user_are_his_inside_and_what_root_makes_there_is_not(stage):
    shared = stage.daemon.place.home / "shared"
    shared.mkdir()
    os.chown(shared, USER, USER)
    (shared / "in").write_text("text")
    os.chown(shared / "in", USER, USER)
    stage.create("web-1", "--copy", f"{shared}:/copied", "--mount", f"{shared}:/shared:writable")
    script = "stat -c %u /shared/in; echo new > /shared/out"
    assert stage.shell("web-1", script) == f"{USER}\n"
    assert (shared / "out").stat().st_uid == SUB
    assert stage.shell("web-1", "cat /copied/in") == "text"
    stage.ok("sandbox", "delete", "web-1")


def test_symlinks_of_root_are_followed_and_those_of_a_sandbox_are_not(stage, top):
    shared, way = stage.daemon.place.home / "shared", top / "way"
    for each in (shared, shared / "a", shared / "a" / "etc"):
        each.mkdir()
        os.chown(each, USER, USER)
    way.symlink_to(shared)
    stage.create("web-1", "--mount", f"{way}/a:/a", "--mount", f"{shared}:/shared:writable")
    stage.shell("web-1", "mv /shared/a /shared/o && ln -s / /shared/a")
    for option in ("--mount", "--copy"):
        words = stage.creating("web-2")
        stage.refuses("a sandbox may have made it", *words, option, f"{way}/a/etc:/etc2")
    stage.ok("sandbox", "delete", "web-1")


def test_builtin_tools_read_what_is_the_user_s_and_change_nothing(stage):
    home = stage.daemon.place.home
    cases.fill(home)
    for path in home.rglob("*"):
        os.chown(path, USER, USER)
    before = cases.look(home)
    stage.create("web-1", *(word for tool in cases.TOOLS for word in ("--builtin-tool", tool)))
    script = cases.reads(cases.COPIES | cases.CACHES)
    assert stage.shell("web-1", f"{script}; echo same") == "same\n"
    stage.shell("web-1", cases.harm())
    assert stage.shell("web-1", "cat ~/.npm/_cacache/one ~/.codex/auth.json") == "harm\nharm\n"
    assert cases.look(home) == before
    stage.ok("sandbox", "delete", "web-1")
    wait_for(lambda: not owned_by_subs(stage.native), "its files are gone")


def test_no_setuid_program_is_left_in_what_is_the_user_s(stage):
    """Other users of the host could run it with this user's rights."""
    shared = stage.daemon.place.home / "programs"
    shared.mkdir()
    os.chown(shared, USER, USER)
    stage.create("web-1", "--mount", f"{shared}:/shared:writable")
    script = """
        for each in /shared/mine /mine; do
            echo x > $each && chown $1 $each && chmod 4755 $each 2>/dev/null; stat -c %a $each
        done
    """
    assert stage.shell("web-1", script.replace("$1", str(USER))) == "644\n4755\n"
    assert (shared / "mine").stat().st_uid == USER
    stage.ok("sandbox", "delete", "web-1")


def test_its_root_is_confined(stage):
    stage.create("web-1")
    script = "echo x > /proc/sys/kernel/hostname || mount -t tmpfs t /tmp || mknod /n b 8 0"
    assert stage.shell("web-1", f"({script}) 2>/dev/null || echo no") == "no\n"
    assert stage.shell("web-1", "ip -o link | wc -l; echo x > /dev/null && echo ok") == "1\nok\n"
    stage.ok("sandbox", "delete", "web-1")


def test_what_an_ordinary_user_cannot_give_is_refused_by_name(stage):
    stage.refuses("memory_limit", *stage.creating("web-1"), "--memory-limit", "64M")
    stage.refuses("cpu_limit", *stage.creating("web-1"), "--cpu-limit", "1")
    stage.refuses("disk_limit", *stage.creating("web-1"), "--disk-limit", "64M")
    assert "sandboxes run without limits" in stage.daemon.log()


def place_in(top):
    place = RootlessPlace(Path(tempfile.mkdtemp(prefix="d", dir=top)))
    place.top.chmod(0o755)
    place.give()
    return place


def test_a_start_that_fails_leaves_no_namespaces(top):
    place = place_in(top)
    place.data.mkdir(mode=0o700)
    (place.data / "native").write_text("in the way")
    os.chown(place.data, USER, USER)
    done = place.call("--foreground")
    assert done.returncode == 1
    assert "native" in done.stderr
    assert not processes()
    place.close()


@pytest.mark.parametrize(
    ("hidden", "text", "words"),
    [
        ("/etc/subuid", "other:1:65536\n", "usermod --add-subuids"),
        ("/etc/subgid", f"tester:{SUB}:10\n", "usermod --add-subgids"),
        ("/usr/bin/newuidmap", "", "'uidmap'"),
        ("/proc/sys/user/max_user_namespaces", "0\n", "sysctl user.max_user_namespaces="),
        ("/proc/interrupts", "", "/proc"),
    ],
)
def test_what_the_host_forbids_is_named(top, tmp_path, hidden, text, words):
    (tmp_path / "file").write_text(text)
    place = place_in(top)
    with mounted(tmp_path / "file", hidden):
        done = place.call("--foreground")
    assert done.returncode == 1
    assert words in done.stderr
    assert not processes()
    place.close()
