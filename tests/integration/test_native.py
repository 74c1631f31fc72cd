"""agentixd with the native backend, used from the command line, on a machine without Docker."""

import tarfile
import time
from pathlib import Path

import pytest
from agxtest import images
from agxtest.cli import DaemonCli
from agxtest.daemon import NativeDaemon
from agxtest.server import wait_for

pytestmark = pytest.mark.deadline(120)

IMAGE = "agx-busybox:1"


class Stage(DaemonCli):
    """The daemon, `agentix` with it, and the machine's objects of its sandboxes."""

    def __init__(self, directory):
        self.daemon = NativeDaemon(directory)
        self.boxes = self.daemon.place.data / "native" / "boxes"
        self.load(images.archive("busybox"))

    def load(self, archive):
        path = self.daemon.place.top / "image.tar"
        path.write_bytes(archive)
        self.ok("image", "import", path)

    def create(self, name, *options, image=IMAGE):
        self.ok("sandbox", "create", "--image", image, "--sandbox-id", name, *options)

    def shell(self, name, script):
        return self.ok("exec", "run", name, "--", "sh", "-c", script)

    def groups(self):
        instance = (self.daemon.place.data / "instance").read_text()[:8]
        top = Path("/sys/fs/cgroup")
        return [*top.glob(f"agentix-{instance}/box-*"), *top.glob(f"*/agentix-{instance}/box-*")]


@pytest.fixture(name="stage")
def fixture_stage(tmp_path):
    stage = Stage(tmp_path / "d")
    yield stage
    stage.daemon.close()


def test_a_sandbox_lives_through_stop_crash_and_restart_and_leaves_nothing(stage):
    stage.create("web-1")
    assert stage.shell("web-1", "id -u; hostname; echo kept > /root/f") == "0\nweb-1\n"
    stage.daemon.restart()
    assert stage.shell("web-1", "cat /root/f") == "kept\n"
    stage.ok("sandbox", "stop", "web-1")
    assert stage.run("exec", "run", "web-1", "--", "true").returncode != 0
    stage.ok("sandbox", "resume", "web-1")
    assert stage.shell("web-1", "cat /root/f") == "kept\n"
    stage.ok("sandbox", "delete", "web-1")
    assert not list(stage.boxes.iterdir())
    assert not stage.groups()


@pytest.mark.parametrize("moment", [0, 0.005, 0.01, 0.02, 0.04, 0.08])
def test_the_end_is_in_order_however_soon_after_the_start_it_comes(stage, moment):
    stage.create("web-1")
    stage.daemon.stop()
    stage.daemon.start()
    time.sleep(moment)
    stage.daemon.stop()
    stage.daemon.start()
    assert stage.shell("web-1", "echo here") == "here\n"


def test_sandboxes_without_a_record_are_removed_at_the_start(stage):
    stage.create("web-1")
    stage.daemon.kill()
    for each in (stage.daemon.place.data / "store").iterdir():
        each.unlink()
    stage.daemon.start()
    wait_for(lambda: not list(stage.boxes.iterdir()), "what nobody knows is gone")
    wait_for(lambda: not stage.groups(), "and its control groups")


def test_a_create_writes_nothing_into_the_sandbox(stage):
    """A layer that all sandboxes share has the mount points."""
    stage.create("clean")
    assert stage.shell("clean", "cat /etc/hostname") == "clean\n"
    upper = stage.boxes / "clean/0/fs/upper"
    assert [str(path) for path in upper.rglob("*")] == []
    stage.shell("clean", "touch /etc/own && ls -ld /etc")
    assert [path.name for path in upper.rglob("*")] == ["etc", "own"]


def test_an_image_that_a_sandbox_is_made_of_stays(stage):
    stage.create("web-1")
    for _ in range(2):
        done = stage.run("image", "rm", IMAGE)
        assert done.returncode == 1
        assert f"'{IMAGE}' is in use by 1 sandbox" in done.stderr
        stage.daemon.restart()
    stage.ok("sandbox", "delete", "web-1")
    stage.ok("image", "rm", IMAGE)


def test_what_it_cannot_give_is_refused_by_name(stage):
    done = stage.run("sandbox", "create", "--image", IMAGE, "--gpus", "all")
    assert done.returncode == 1
    assert "gpus" in done.stderr


def test_sandboxes_see_neither_each_other_nor_the_host(stage):
    stage.create("web-1", "--", "httpd", "-f", "-p", "80")
    stage.create("web-2")
    address = stage.shell("web-1", "ip -4 -o addr show eth0").split()[3].split("/")[0]
    listens = f"until nc -w 5 {address} 80 </dev/null; do sleep 0.05; done; echo open"
    assert stage.shell("web-1", listens) == "open\n"
    script = f"nc -w 2 {address} 80 </dev/null && echo open || echo closed"
    assert stage.shell("web-2", script) == "closed\n"


# ---- unusual images


@pytest.mark.parametrize(("said", "meant"), [("app", "/app"), ("srv/../new/dir", "/new/dir")])
def test_a_relative_working_directory_is_one_below_the_root(stage, said, meant):
    tree = images.base()
    tree.directory("app", "srv")
    stage.load(images.pack("relative", images.busybox(tree), {"WorkingDir": said}))
    stage.create("web-1", "--", "sh", "-c", "pwd; sleep 1000", image="agx-relative:1")
    assert stage.shell("web-1", "pwd") == f"{meant}\n"
    log = stage.boxes / "web-1/0/main.log"
    wait_for(lambda: log.read_text() == f"{meant}\n", "the main process has it too")


ETC = ("hosts", "resolv.conf", "hostname")


def with_links(stage, leads_to):
    """A sandbox of an image that has links in place of these files."""
    tree = images.base()
    for name in ETC:
        tree.link(f"etc/{name}", leads_to.format(name))
    stage.load(images.pack("links", images.busybox(tree), {}))
    stage.create("web-1", image="agx-links:1")
    assert "127.0.0.1\tlocalhost\n" in stage.shell("web-1", "cat /etc/hosts")


@pytest.mark.parametrize("leads_to", ["../run/systemd/resolve/stub-resolv.conf", "{}"])
def test_links_to_nothing_give_way_to_the_sandbox_s_own_files(stage, leads_to):
    with_links(stage, leads_to)
    assert stage.shell("web-1", "cat /etc/hostname; find /etc -type l; ls -A /run 2>&-; true") == (
        "web-1\n"
    )
    stage.ok("sandbox", "stop", "web-1")
    stage.ok("sandbox", "resume", "web-1")
    assert stage.shell("web-1", "cat /etc/hostname") == "web-1\n"


@pytest.mark.parametrize("name", ["there", "missing"])
def test_links_to_files_of_the_host_lead_nowhere(stage, tmp_path, name):
    (tmp_path / "there").write_text("the host's")
    before = set(tmp_path.iterdir())
    with_links(stage, f"../../../../../../../..{tmp_path / name}")
    script = f"echo mine >/etc/hosts; test -e {tmp_path / name} || echo no"
    assert stage.shell("web-1", script) == "no\n"
    assert set(tmp_path.iterdir()) == before
    assert (tmp_path / "there").read_text() == "the host's"


# ---- /etc/passwd and /etc/group


def test_an_image_without_passwd_gets_one_with_root_and_its_user(stage):
    stage.load(images.pack("bare", images.busybox(images.Tree()), {"User": "2000:2001"}))
    stage.create("web-1", image="agx-bare:1")
    assert stage.shell("web-1", "id -un; id -gn; echo $HOME") == "u2000\ng2001\n/\n"
    lines = "root:x:0:0:root:/:/bin/sh\nu2000:x:2000:2001::/:/bin/sh\n"
    assert stage.shell("web-1", "cat /etc/passwd") == lines
    assert stage.shell("web-1", "cat /etc/group") == "root:x:0:\ng2001:x:2001:\n"
    stage.ok("sandbox", "stop", "web-1")
    stage.ok("sandbox", "resume", "web-1")
    assert stage.shell("web-1", "cat /etc/passwd") == lines, "once is enough"


def test_a_user_that_the_image_does_not_list_is_added_to_what_it_has(stage):
    tree = images.Tree()
    tree.directory("etc")
    # A file without a line break at its end, as editors may leave it.
    tree.file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\napp:x:1500:1500::/home/app:/bin/sh")
    tree.file("etc/group", "root:x:0:\n", mode=0o600)
    stage.load(images.pack("some", images.busybox(tree), {"User": "2000"}))
    stage.create("web-1", image="agx-some:1")
    assert stage.shell("web-1", "cat /etc/passwd").splitlines() == [
        "root:x:0:0:root:/root:/bin/sh",
        "app:x:1500:1500::/home/app:/bin/sh",
        "u2000:x:2000:0::/:/bin/sh",
    ]
    assert stage.shell("web-1", "stat -c %a /etc/group") == "600\n", "the image's own stays"


def test_users_that_the_image_lists_change_nothing(stage):
    stage.create("web-1")
    assert stage.shell("web-1", "cat /etc/passwd").count("\n") == 2
    upper = stage.boxes / "web-1" / "0" / "fs" / "upper" / "etc"
    assert not (upper / "passwd").exists() and not (upper / "group").exists()


@pytest.mark.parametrize("kind", ["link", "link to /proc", "fifo", "directory"])
def test_a_passwd_that_is_no_file_leads_nowhere_and_stays(stage, tmp_path, kind):
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o777)
    shadow = outside / "shadow"
    shadow.write_text("secret\n")
    shadow.chmod(0o666)
    tree = images.Tree()
    tree.directory("etc")
    if kind == "fifo":
        tree.add("etc/passwd", tarfile.FIFOTYPE, 0o666)
    elif kind == "directory":
        tree.directory("etc/passwd")
    else:
        path = shadow if kind == "link" else f"/proc/self/root{shadow}"
        tree.link("etc/passwd", str(path))
    stage.load(images.pack("hostile", images.busybox(tree), {"User": "2000"}))
    # The target of the link exists and can be written.
    mount = ("--mount", f"{outside}:{outside}:writable")
    stage.create("web-1", *mount, image="agx-hostile:1")
    # Not by `id`, which would wait for the other end of a FIFO.
    assert stage.shell("web-1", "awk '/^Uid/ { print $2 }' /proc/self/status") == "2000\n"
    found = stage.shell("web-1", "test -f /etc/passwd && ! test -L /etc/passwd; echo $?")
    assert found == "1\n"
    assert shadow.read_text() == "secret\n" and list(outside.iterdir()) == [shadow]


# ---- what the main process writes


def test_what_the_main_process_writes_is_in_its_log_and_that_of_the_last_start_too(stage):
    script = (
        "echo out; echo err >&2; echo named >/dev/stdout; trap 'exit 0' TERM; sleep 1000 & wait"
    )
    stage.load(images.pack("user", images.busybox(), {"User": "1500"}))
    stage.create("web-1", "--", "sh", "-c", script, image="agx-user:1")
    log = stage.boxes / "web-1" / "0" / "main.log"
    wait_for(lambda: log.read_text() == "out\nerr\nnamed\n", "all is in the log")
    assert log.stat().st_mode & 0o777 == 0o600
    stage.daemon.restart()
    stage.ok("sandbox", "stop", "web-1")
    assert log.read_text() == "out\nerr\nnamed\n"
    stage.ok("sandbox", "resume", "web-1")
    assert log.with_name("main.log.1").read_text() == "out\nerr\nnamed\n"
    stage.ok("sandbox", "delete", "web-1")


def test_a_sandbox_that_idles_has_no_such_log(stage):
    stage.create("web-1")
    assert not (stage.boxes / "web-1" / "0" / "main.log").exists()
