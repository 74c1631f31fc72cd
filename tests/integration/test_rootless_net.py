"""The network of an ordinary user's sandboxes, which pasta provides.

    sandbox -- the user's own namespace -- pasta -- host of the box -- up0 | eth0 -- `outside`

The host of the box has a second address on its uplink, and a second network.
"""

import contextlib
import os
import signal
import socket
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from agxtest.server import free_port, held_up, wait_for
from local_resolver import ANSWER, RESOLVER, resolver
from rootless_fixtures import *  # noqa: F403
from rootless_fixtures import mounted, processes, staged

pytestmark = pytest.mark.deadline(120)

TUN = Path("/dev/net/tun")
PORT = 8765
HOST, SECOND, GATEWAY = "203.0.113.1", "203.0.113.2", "203.0.113.10"
THIRD = "203.0.113.3"
FAR, OTHER = "8.8.77.1", "8.8.77.2"
LAN = "172.31.77.1"
SERVE = f"echo an answer >index.html; exec httpd -f -p {PORT}"


def sh(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


@contextlib.contextmanager
def serving(directory, *prefix):
    """Runs a server on all addresses of a network namespace, and waits for its end."""
    directory.mkdir()
    server = subprocess.Popen([*prefix, "busybox", "sh", "-c", SERVE], cwd=directory)
    try:
        yield server
    finally:
        server.kill()
        server.wait()


def make_tun(node, mode):
    os.mknod(node, stat.S_IFCHR, os.makedev(10, 200))
    node.chmod(mode)
    return node


def has_tun():
    with tempfile.TemporaryDirectory() as top:
        try:
            os.close(os.open(make_tun(Path(top, "tun"), 0o600), os.O_RDWR))
        except OSError:
            return False
    return TUN.exists()


@pytest.fixture(name="tun", scope="module", autouse=True)
def fixture_tun(top):
    """/dev/net/tun with the usual mode, which lets all users open it."""
    if not has_tun():
        yield
        return
    with mounted(make_tun(top / "tun", 0o666), TUN):
        yield


@pytest.fixture(name="outside", scope="module", autouse=True)
def fixture_outside(tmp_path_factory):
    """The network around the host of the box."""
    sh("ip", "netns", "add", "outside")
    sh("ip", "link", "add", "up0", "type", "veth", "peer", "name", "eth0", "netns", "outside")
    inside = ("ip", "-n", "outside")
    for address in (f"{GATEWAY}/24", f"{FAR}/32", f"{OTHER}/32"):
        sh(*inside, "addr", "add", address, "dev", "eth0")
    sh(*inside, "link", "set", "lo", "up")
    sh(*inside, "link", "set", "eth0", "up")
    for address in (HOST, SECOND):
        sh("ip", "addr", "add", f"{address}/24", "dev", "up0")
    sh("ip", "link", "set", "up0", "up")
    sh("ip", "route", "add", "default", "via", GATEWAY)
    sh("ip", "link", "add", "lan0", "type", "bridge")
    sh("ip", "addr", "add", f"{LAN}/24", "dev", "lan0")
    sh("ip", "link", "set", "lan0", "up")
    top = tmp_path_factory.mktemp("servers")
    with serving(top / "far", "ip", "netns", "exec", "outside"), serving(top / "host"):
        for address in (HOST, SECOND, LAN, FAR):
            wait_for(lambda address=address: answers(address), f"{address} answers")
        yield
    sh("ip", "link", "del", "lan0")
    sh("ip", "link", "del", "up0")
    sh("ip", "netns", "del", "outside")


def answers(address, port=PORT):
    """Whether the address answers to the host."""
    try:
        with socket.create_connection((address, port), timeout=5) as s:
            s.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return b"an answer" in s.makefile("rb").read()
    except OSError:
        return False


def reaches(stage, name, address, seconds=45):
    """Whether the sandbox reaches the address. A refused connection fails at once; the time only
    ends one that hangs or gets no answer."""
    ask = f"timeout {seconds} wget -qO- http://{address}:{PORT}/ 2>/dev/null || echo no"
    return stage.shell(name, ask) == "an answer\n"


def reaches_soon(stage, name, address=FAR):
    wait_for(lambda: reaches(stage, name, address), f"{name} reaches {address}")


def pastas():
    """The pids. The second name is that of builds for a specific processor."""
    return [int(pid) for pid, name in processes() if name.startswith(("pasta", "passt"))]


def pasta():
    """The only pid. There may be two for a moment, because pasta forks during its start."""

    def found():
        pids = pastas()
        return pids if len(pids) == 1 else None

    return wait_for(found, "one pasta runs")[0]


def ended(stage):
    stage.daemon.stop()
    assert not (stage.daemon.place.data / "pasta").exists()
    wait_for(lambda: not processes(), "nothing of the user runs")


def test_a_sandbox_reaches_the_world_and_nothing_of_the_host(stage):
    stage.ok(*stage.creating("web-1", network=None))
    stage.create("web-2", "--network", "nat")
    assert reaches(stage, "web-1", FAR)
    assert reaches(stage, "web-2", OTHER)
    pasta()
    own = stage.shell("web-2", "ip -4 -o addr show eth0").split()[3].split("/")[0]
    serve = f"cd /tmp; echo an answer >index.html; httpd -p {PORT}"
    stage.shell("web-2", serve)
    assert reaches(stage, "web-2", own)
    for address in (HOST, SECOND, "192.0.0.1", "192.0.0.2", own):
        assert not reaches(stage, "web-1", address), address
    assert not reaches(stage, "web-1", LAN, seconds=1)
    for name in ("web-1", "web-2"):
        stage.ok("sandbox", "delete", name)
    ended(stage)


def test_a_list_of_egress_holds(stage):
    stage.ok(*stage.creating("web-1", "egress"), "--egress", f"{FAR}:{PORT}")
    assert reaches(stage, "web-1", FAR)
    assert not reaches(stage, "web-1", OTHER)
    stage.ok("sandbox", "delete", "web-1")


def test_an_address_that_the_host_gets_later_is_not_reached(stage):
    stage.ok(*stage.creating("web-1", "nat"))
    old = pasta()
    sh("ip", "addr", "add", f"{THIRD}/24", "dev", "up0")
    try:
        wait_for(lambda: old not in pastas(), "pasta knows the new address")
        reaches_soon(stage, "web-1")
        assert answers(THIRD)
        assert not reaches(stage, "web-1", THIRD)
    finally:
        sh("ip", "addr", "del", f"{THIRD}/24", "dev", "up0")
    stage.ok("sandbox", "delete", "web-1")


def test_changes_are_heard_also_behind_more_of_them_than_there_is_room_for(stage):
    stage.ok(*stage.creating("web-1", "nat"))
    old = pasta()
    others = [f"10.99.{i // 250}.{i % 250 + 1}/32 dev lan0" for i in range(3000)]
    batch = "".join(f"addr {verb} {each}\n" for verb in ("add", "del") for each in others)
    with held_up(stage.daemon.process.pid):
        subprocess.run(["ip", "-batch", "-"], input=batch, text=True, check=True)
    for verb in ("add", "del"):
        sh("ip", "addr", verb, f"{THIRD}/24", "dev", "up0")
        wait_for(lambda old=old: old not in pastas(), "pasta knows of the change")
        old = pasta()
    stage.ok("sandbox", "delete", "web-1")


def test_a_pasta_that_is_killed_is_started_again(stage):
    stage.ok(*stage.creating("web-1", "nat"))
    old = pasta()
    os.kill(old, signal.SIGKILL)
    wait_for(lambda: [pid for pid in pastas() if pid != old], "another one")
    reaches_soon(stage, "web-1")
    assert not reaches(stage, "web-1", SECOND)
    stage.ok("sandbox", "delete", "web-1")
    ended(stage)


def test_it_outlives_a_daemon_that_is_killed_and_the_next_one_takes_it_over(stage):
    stage.ok(*stage.creating("web-1", "nat"))
    old = pasta()
    stage.daemon.kill()
    assert pastas() == [old]
    stage.daemon.start()
    assert reaches(stage, "web-1", FAR)
    stage.ok(*stage.creating("web-2", "nat"))
    assert reaches(stage, "web-2", FAR)
    assert pastas() == [old]
    os.kill(old, signal.SIGKILL)
    reaches_soon(stage, "web-1")
    for name in ("web-1", "web-2"):
        stage.ok("sandbox", "delete", name)
    ended(stage)


def test_one_that_ended_while_there_was_no_daemon_is_started_again(stage):
    stage.ok(*stage.creating("web-1", "nat"))
    old = pasta()
    stage.daemon.kill()
    os.kill(old, signal.SIGKILL)
    wait_for(lambda: not pastas(), "it is gone")
    stage.daemon.start()
    reaches_soon(stage, "web-1")
    stage.ok("sandbox", "delete", "web-1")
    ended(stage)


def test_what_waits_for_a_daemon_that_ends_never_begins(top, tmp_path):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    words = [top / "bin" / "agentix-init", "--gate", theirs.fileno(), "/bin/touch", tmp_path / "it"]
    with ours, subprocess.Popen(map(str, words), pass_fds=[theirs.fileno()]) as process:
        theirs.close()
        ours.close()
        assert process.wait() == 125
    assert not (tmp_path / "it").exists()


def test_declared_ports_are_reached_on_the_host(stage):
    port = free_port()
    stage.ok(*stage.creating("web-1", "nat"), "--port", f"{port}:{PORT}")
    stage.shell("web-1", f"cd /tmp; echo an answer >index.html; httpd -p {PORT}")
    wait_for(lambda: answers("127.0.0.1", port), "the port answers")
    stage.ok("sandbox", "delete", "web-1")


@pytest.fixture(name="asked")
def fixture_asked():
    """The names that the host's resolver was asked for; only the host reaches that resolver."""
    conf = Path("/etc/resolv.conf")
    before = conf.read_text() if conf.exists() else None
    conf.write_text(f"nameserver {RESOLVER}\n")
    with resolver() as asked:
        yield asked
    if before is None:
        conf.unlink()
    else:
        conf.write_text(before)


def test_names_are_asked_for_by_the_host_where_only_it_can(stage, asked):
    stage.ok(*stage.creating("web-1", "nat"))
    assert ANSWER in stage.shell("web-1", "nslookup some.test")
    assert "some.test" in asked
    stage.ok("sandbox", "delete", "web-1")


def test_a_program_that_is_missing_is_named(top, tmp_path):
    (tmp_path / "file").write_text("")
    with mounted(tmp_path / "file", "/usr/bin/pasta"), staged(top) as stage:
        stage.refuses("'passt'", *stage.creating("web-1", "nat"))
        stage.create("web-2")
        stage.ok("sandbox", "delete", "web-2")


def test_a_device_that_is_not_the_users_is_named(top):
    node = make_tun(top / "private", 0o600)
    with mounted(node, TUN), staged(top) as stage:
        stage.refuses(str(TUN), *stage.creating("web-1", "nat"))


def test_what_it_says_when_it_does_not_start_is_told(top, tmp_path):
    program = tmp_path / "pasta"
    program.write_text("#!/bin/sh\necho not today >&2\nexit 1\n")
    program.chmod(0o755)
    with mounted(program, "/usr/bin/pasta"), staged(top) as stage:
        stage.refuses("not today", *stage.creating("web-1", "nat"))
        assert not (stage.daemon.place.data / "pasta").exists()
        stage.ok("sandbox", "delete", "web-1")


def test_a_host_without_a_way_out_has_sandboxes_that_wait_for_one(stage):
    sh("ip", "route", "del", "default")
    try:
        stage.ok(*stage.creating("web-1", "nat"))
        assert not pastas()
    finally:
        sh("ip", "route", "add", "default", "via", GATEWAY)
    reaches_soon(stage, "web-1")
    stage.ok("sandbox", "delete", "web-1")


# A kernel without that device gives no network, but the test still shows what is refused then.
if not has_tun():
    missing = (test_a_program_that_is_missing_is_named,)
    for each in [name for name in globals() if name.startswith("test_")]:
        if globals()[each] not in missing:
            del globals()[each]
