"""The pool of namespace sets, tested from inside: namespaces of the test act as a host and the
world, and the sets' namespaces as sandboxes. Runs in a box of namespaces
(tests/support/docker_box.py), because a chroot may not have user namespaces.

       world (Internet, LAN, metadata): it knows no way to the sandboxes' addresses
         |
 up0   host   br-other -- other
         |
    agx........   one link, or bridge, for each nsset
"""

import ctypes
import os
import re
import signal
import subprocess

import pytest
from agxtest import linux
from agxtest.driver import Driver
from agxtest.networld import (
    Namespace,
    add_addresses,
    each_open,
    each_refused,
    link,
    needs_namespaces,
)
from agxtest.server import children, session_members, wait_for

DRIVER, INIT = os.environ["NSSET_DRIVER"], os.environ["AGENTIX_INIT"]
TABLE, ALIAS = "agentix-1234abcd", "agentix-1234abcd"
BASE, IDS = 0x70000000, 65536
LAN, NET, METADATA, OTHER = "192.168.77.1", "203.0.113.10", "169.254.169.254", "172.30.0.2"
HOST = "192.168.77.2"
CLONE_NEWUSER = 0x10000000


class World:
    def __init__(self):
        self.spaces = [Namespace(name) for name in ("host", "world", "other")]
        self.host, self.world, self.other = self.spaces
        link(self.host, "up0", self.world, "eth0")
        add_addresses(self.host, "up0", f"{HOST}/24")
        add_addresses(self.world, "eth0", f"{LAN}/24")
        add_addresses(self.world, "lo", f"{NET}/32", f"{METADATA}/32")
        self.host.run("ip", "route", "add", "default", "via", LAN)
        self.host.run("ip", "link", "add", "br-other", "type", "bridge")
        self.host.run("ip", "link", "set", "br-other", "up")
        add_addresses(self.host, "br-other", "172.30.0.1/24")
        link(self.host, "v-other", self.other, "eth0")
        self.host.run("ip", "link", "set", "v-other", "master", "br-other")
        add_addresses(self.other, "eth0", f"{OTHER}/24")
        self.other.run("ip", "route", "add", "default", "via", "172.30.0.1")
        for each in self.spaces:
            each.serve(53, 80, 443)

    def links(self):
        """The names of the links with our alias."""
        printed = self.host.run("ip", "-o", "link")
        return {re.match(r"\d+: ([^@:]+)", s)[1] for s in printed.splitlines() if ALIAS in s}

    def all_links(self):
        printed = self.host.run("ip", "-o", "link")
        return {re.match(r"\d+: ([^@:]+)", line)[1] for line in printed.splitlines()}

    def has_table(self):
        return f"table inet {TABLE}" in self.host.run("nft", "list", "tables")

    def close(self):
        for each in self.spaces:
            each.close()


class Inside(Namespace):
    """The network of one member, with a process that lives in it as a sandbox would."""

    def __init__(self, name, path):
        self.name, self.path, self.agents = name, path, []
        self.holder = subprocess.Popen(["sleep", "infinity"], preexec_fn=self._join)

    def _join(self):
        linux.die_with_parent()
        with open(self.path, "rb") as ns:
            linux.setns(ns.fileno(), linux.CLONE_NEWNET)


class Member:
    def __init__(self, pid, name, words):
        self.base, self.address = int(words[0]), words[1]
        self.user = f"/proc/{pid}/fd/{words[2]}"
        self.net = f"/proc/{pid}/fd/{words[3]}"
        self.name, self._inside = name, None

    @property
    def inside(self):
        if not self._inside:
            self._inside = Inside(self.name, self.net)
        return self._inside

    def end(self):
        if self._inside:
            self._inside.close()


class Nsset:
    def __init__(self, pid, name, answer):
        words = answer.split()
        assert words[0] == "ok", answer
        self.name, self.interface, self.subnet, self.gateway = name, *words[1:4]
        self.members = [Member(pid, name, words[i : i + 4]) for i in range(4, len(words), 4)]

    @property
    def inside(self):
        return self.members[0].inside

    @property
    def address(self):
        return self.members[0].address


class NssetPool(Driver):
    """tests/integration/nsset_driver.c: the part of a daemon that owns namespace sets."""

    def __init__(self, world, ready=2, init=INIT):
        self.world, self.notices, self.taken = world, [], {}
        super().__init__(world.host, DRIVER, init, str(ready))

    def hear(self):
        while (line := super().hear()).startswith("notice "):
            self.notices.append(line)
        return line

    def keep(self, name, answer):
        self.taken[name] = Nsset(self.process.pid, name, answer)
        return self.taken[name]

    def take(self, name, network="nat", members=1, bases="-", entries=""):
        return self.keep(name, self.say(f"take {name} {network} {members} {bases} {entries}"))

    def adopt(self, nsset, network="nat", entries=""):
        bases = ",".join(str(m.base) for m in nsset.members)
        line = f"adopt {nsset.name} {network} {nsset.interface} {nsset.subnet} {bases} {entries}"
        return self.keep(nsset.name, self.say(line))

    def end(self, nsset):
        """Ends the set as a sandbox does: its processes end first."""
        for each in nsset.members:
            each.end()
        self.ok(f"remove {nsset.name}")
        del self.taken[nsset.name]

    def close(self):
        for nsset in list(self.taken.values()):
            self.end(nsset)
        return self.stop()


@pytest.fixture(scope="module")
def world():
    needs_namespaces()
    w = World()
    yield w
    w.close()


@pytest.fixture
def nssets(world):
    n = NssetPool(world).ok("begin")
    yield n
    assert n.close() == 0
    wait_for(lambda: not world.links(), "no link is left")
    assert not world.has_table()


def forbidden(nsset):
    own = (HOST, nsset.gateway, "172.30.0.1", OTHER, METADATA)
    return [(address, 80) for address in own]


def test_a_sandbox_reaches_the_internet_by_the_hosts_address(world, nssets):
    a = nssets.take("a")
    each_open(a.inside, (NET, 80), (NET, 443), (LAN, 80))
    wait_for(lambda: a.inside.connect(NET, 80, kind="udp") == "open", "datagrams")


def test_a_sandbox_reaches_no_host_no_neighbour_and_no_metadata(world, nssets):
    a, b = nssets.take("a"), nssets.take("b")
    b.inside.serve(80)
    each_open(world.host, (b.address, 80))
    each_refused(a.inside, *forbidden(a), (b.address, 80), (b.gateway, 80))
    kept_out = (HOST, a.gateway, b.address, OTHER, METADATA)
    each_refused(a.inside, *((address, 80) for address in kept_out), kind="udp")


def test_nobody_but_the_host_reaches_a_sandbox(world, nssets):
    a = nssets.take("a")
    a.inside.serve(80)
    each_open(world.host, (a.address, 80))
    each_refused(world.other, (a.address, 80))
    world.world.run("ip", "route", "add", a.subnet, "via", HOST)
    each_refused(world.world, (a.address, 80))
    world.world.run("ip", "route", "delete", a.subnet)


def test_an_address_that_is_added_inside_leads_nowhere(world, nssets):
    a = nssets.take("a")
    mine = "10.99.0.9"
    add_addresses(a.inside, "eth0", f"{mine}/32")
    world.world.run("ip", "route", "add", f"{mine}/32", "via", HOST)
    world.host.run("ip", "route", "add", f"{mine}/32", "via", a.address)
    assert a.inside.connect(NET, 80, source=mine) == "silent"
    assert a.inside.connect(HOST, 80, source=mine) == "silent"
    world.world.run("ip", "route", "delete", f"{mine}/32")
    each_open(a.inside, (NET, 80))


def test_a_closed_network_opens_what_its_list_names_and_the_list_may_change(world, nssets):
    a = nssets.take("a", "closed", entries=f"{NET}:443")
    each_open(a.inside, (NET, 443))
    each_refused(a.inside, (NET, 80), (LAN, 443), *forbidden(a))
    nssets.ok(f"restrict a {NET}:80")
    each_open(a.inside, (NET, 80))
    each_refused(a.inside, (NET, 443), *forbidden(a))
    nssets.ok("restrict a")
    each_refused(a.inside, (NET, 80), (NET, 443))


def test_without_a_network_there_is_loopback_alone(world, nssets):
    a = nssets.take("a", "none", members=2)
    for member in a.members:
        assert re.findall(r"^\d+: (\S+):", member.inside.run("ip", "-o", "link"), re.M) == ["lo"]
        assert member.inside.run("ip", "route") == ""
        member.inside.serve(80)
        each_open(member.inside, ("127.0.0.1", 80))
        assert member.inside.connect(NET, 80) == "unreachable"
    assert a.interface == a.gateway == a.members[1].address == "-"


def test_companions_reach_each_other_and_the_internet_and_no_more(world, nssets):
    a, b = nssets.take("a", members=3), nssets.take("b", "closed", members=2)
    for nsset in (a, b):
        for member in nsset.members:
            member.inside.serve(80)
    each_open(a.inside, *((m.address, 80) for m in a.members), (NET, 80))
    each_open(a.members[2].inside, (a.address, 80), (NET, 80))
    each_open(b.inside, (b.members[1].address, 80))
    each_refused(b.inside, (NET, 80), (a.address, 80))
    for member in a.members:
        each_refused(member.inside, *forbidden(a), (b.address, 80))
    assert len({m.base for m in (*a.members, *b.members)}) == 5


def test_a_sandbox_has_no_ipv6_but_on_loopback(world, nssets):
    a = nssets.take("a")
    printed = a.inside.run("ip", "-o", "-6", "address")
    assert [line.split()[1] for line in printed.splitlines()] == ["lo"]
    assert "eth0" not in a.inside.run("ip", "-6", "route")


def test_ordinary_users_inside_have_low_ports_and_may_ping(world, nssets):
    a = nssets.take("a")
    read = a.inside.run("sh", "-c", "cat /proc/sys/net/ipv4/ip_unprivileged_port_start")
    assert read.strip() == "0"
    read = a.inside.run("cat", "/proc/sys/net/ipv4/ping_group_range")
    assert read.split()[1] != "0"


def id_map(member):
    """The id map, as a process in the user namespace sees it."""

    def enter():
        with open(member.user, "rb") as ns:
            linux.setns(ns.fileno(), CLONE_NEWUSER)

    printed = [
        subprocess.run(["cat", f"/proc/self/{name}"], preexec_fn=enter, capture_output=True).stdout
        for name in ("uid_map", "gid_map")
    ]
    return [[int(word) for word in text.split()] for text in printed]


def test_every_member_has_ids_of_its_own(world, nssets):
    a, b = nssets.take("a", members=2), nssets.take("b", "none")
    members = [*a.members, *b.members]
    assert len({m.base for m in members}) == 3
    for each in members:
        assert each.base >= BASE and (each.base - BASE) % IDS == 0
        assert id_map(each) == [[0, each.base, IDS]] * 2


def test_the_network_belongs_to_the_user_namespace(world, nssets):
    a = nssets.take("a").members[0]
    with open(a.net, "rb") as net, open(a.user, "rb") as user:
        owner = ctypes.CDLL(None).ioctl(net.fileno(), 0xB701)  # NS_GET_USERNS
        assert os.fstat(owner).st_ino == os.fstat(user.fileno()).st_ino
        os.close(owner)


def test_ids_stay_reserved_until_they_are_released(world, nssets):
    a = nssets.take("a", members=2)
    bases = [m.base for m in a.members]
    nssets.end(a)
    others = [nssets.take(f"n{i}", "none").members[0].base for i in range(20)]
    assert not set(bases) & set(others)
    again = nssets.take("a", members=2, bases=",".join(map(str, bases)))
    assert [m.base for m in again.members] == bases
    assert id_map(again.members[1]) == [[0, bases[1], IDS]] * 2
    each_open(again.inside, (NET, 80))
    assert "not reserved" in nssets.say(f"take x nat 1 {BASE + 60 * IDS}")
    assert "is taken already" in nssets.say(f"reserve {bases[0]}")
    assert "does not begin one" in nssets.say(f"reserve {BASE + 1}")


def test_ids_run_out_with_a_word_and_come_back(world, nssets):
    taken = []
    while (answer := nssets.say(f"take n{len(taken)} none 13 -")).startswith("ok"):
        taken.append(nssets.keep(f"n{len(taken)}", answer))
    assert "ranges of user ids" in answer
    gone = taken.pop()
    nssets.end(gone)
    nssets.ok(*(f"release {m.base}" for m in gone.members))
    nssets.take("again", "none", members=13)


def test_too_many_companions_are_refused(world, nssets):
    assert "at most 12 share its network" in nssets.say("take a nat 14 -")


def test_what_was_removed_is_gone_from_links_and_rules(world, nssets):
    a, b = nssets.take("a"), nssets.take("b", members=2)
    interfaces = {a.interface, b.interface}
    assert interfaces <= world.links()
    rules = world.host.run("nft", "list", "table", "inet", TABLE)
    assert all(each in rules for each in interfaces)
    nssets.end(a)
    nssets.end(b)
    wait_for(lambda: not interfaces & world.links(), "links are gone")
    listed = lambda: world.host.run("nft", "list", "table", "inet", TABLE)  # noqa: E731
    wait_for(lambda: not any(each in listed() for each in interfaces), "elements are gone")


def test_a_link_that_a_process_holds_is_taken_from_it(world, nssets):
    """A process of the host in the sandbox's network must not keep the address."""
    a = nssets.take("a")
    stray = Inside("stray", a.members[0].net)
    nssets.end(a)
    wait_for(lambda: a.interface not in world.all_links(), "the link is gone")
    stray.close()


def test_many_at_a_time_are_all_different_and_leave_nothing(world):
    before = world.all_links()
    nssets = NssetPool(world, ready=4).ok("begin")
    names = [f"n{i}" for i in range(30)]
    for name in names:
        nssets.tell(f"take {name} nat 1 -")
    made = [nssets.keep(name, nssets.hear()) for name in names]
    for field in ("interface", "subnet", "address"):
        assert len({getattr(each, field) for each in made}) == len(made)
    each_open(made[-1].inside, (NET, 80))
    each_refused(made[-1].inside, (made[0].address, 80))
    assert nssets.close() == 0
    wait_for(lambda: world.all_links() <= before, "no link is left")
    assert not world.has_table()


def test_ready_nssets_are_firewalled_and_go_with_the_daemon(world):
    nssets = NssetPool(world, ready=3).ok("begin")
    wait_for(lambda: len(world.links()) == 3, "three are ready")
    assert nssets.stop() == 0
    wait_for(lambda: not world.links(), "no link is left")
    assert not world.has_table()


def test_a_killed_daemon_leaves_what_lives_and_the_next_adopts_it(world):
    first = NssetPool(world, ready=2).ok("begin")
    a, b = first.take("a"), first.take("b", "closed", members=2, entries=f"{NET}:443")
    c = first.take("c")
    for member in (*a.members, *b.members):
        assert member.inside
    first.kill()
    lives = {a.interface, b.interface}
    wait_for(lambda: world.links() == lives, "what nobody lives in is gone")
    each_open(a.inside, (NET, 80))
    each_refused(a.inside, *forbidden(a))

    second = NssetPool(world, ready=1)
    bases = [m.base for m in b.members]
    adopted = second.adopt(a)
    assert (adopted.address, adopted.gateway) == (a.address, a.gateway)
    second.adopt(b, "closed", entries=f"{NET}:443")
    second.ok(f"reserve {c.members[0].base}", "begin")
    each_open(a.inside, (NET, 80))
    each_open(b.inside, (NET, 443))
    each_refused(b.inside, (NET, 80), *forbidden(b))
    assert second.take("d").members[0].base not in {a.members[0].base, *bases, c.members[0].base}
    for member in (*a.members, *b.members):
        member.end()
    assert second.close() == 0
    wait_for(lambda: not world.links(), "no link is left")
    assert not world.has_table()


def test_what_stands_with_our_mark_and_is_nobodys_goes_at_the_start(world):
    for name in ("agx00000001", "agx00000002"):
        world.host.run("ip", "link", "add", name, "type", "bridge")
    world.host.run("ip", "link", "set", "agx00000001", "alias", ALIAS)
    world.host.run("ip", "link", "set", "agx00000002", "alias", "agentix-ffffffff")
    world.host.run("nft", f"add table inet {TABLE}")
    nssets = NssetPool(world, ready=0).ok("begin")
    assert "agx00000001" not in world.all_links()
    assert "agx00000002" in world.all_links()
    assert not world.has_table()
    world.host.run("ip", "link", "delete", "agx00000002")
    assert nssets.close() == 0


def test_a_bridge_of_one_that_was_killed_before_it_was_marked_goes_at_the_start(world):
    """The daemon was killed between two messages: the bridge has our group, but not our alias."""
    nssets = NssetPool(world, ready=0).ok("begin")
    bridge = nssets.take("a", members=2).interface
    group = re.search(r" group (\d+) ", world.host.run("ip", "-o", "link", "show", bridge))[1]
    for name in ("agx00000001", "agx00000002"):
        world.host.run("ip", "link", "add", name, "type", "bridge")
    world.host.run("ip", "link", "set", "agx00000001", "group", group)
    world.host.run("ip", "link", "set", "agx00000002", "group", str(int(group) - 1))
    assert nssets.close() == 0
    nssets = NssetPool(world, ready=0).ok("begin")
    assert "agx00000001" not in world.all_links()
    assert "agx00000002" in world.all_links()
    world.host.run("ip", "link", "delete", "agx00000002")
    assert nssets.close() == 0
    wait_for(lambda: not world.links(), "no link is left")


def test_forwarding_is_switched_on_and_said(world):
    world.host.sysctl(net__ipv4__ip_forward=0)
    nssets = NssetPool(world, ready=0).ok("begin")
    assert "ip_forward" in nssets.notices[0]
    assert world.host.run("cat", "/proc/sys/net/ipv4/ip_forward").strip() == "1"
    each_open(nssets.take("a").inside, (NET, 80))
    assert nssets.close() == 0
    assert len(nssets.notices) == 1


ENGINE = """
table ip filter {
    chain DOCKER-USER { counter return; }
    chain FORWARD {
        type filter hook forward priority filter; policy drop;
        jump DOCKER-USER
        oifname "br-other" ct state established,related accept
        iifname "br-other" oifname "up0" accept
    }
}
"""


@pytest.fixture
def engine(world):
    """The rules of an engine, which forward only the traffic that they name."""

    def start():
        world.host.run("nft", "-f", "-", text=ENGINE)

    yield start
    world.host.run("nft", "-f", "-", text="add table ip filter\ndelete table ip filter")


def passes(world):
    listed = world.host.run("nft", "list", "chain", "ip", "filter", "DOCKER-USER")
    return [s for s in listed.splitlines() if ALIAS in s]


def test_where_an_engine_lets_nothing_pass_sandboxes_do_all_the_same(world, engine):
    engine()
    nssets = NssetPool(world, ready=0).ok("begin")
    assert passes(world) == []
    a = nssets.take("a")
    a.inside.serve(80)
    assert len(passes(world)) == 2
    each_open(a.inside, (NET, 80), (LAN, 80))
    each_open(world.host, (a.address, 80))
    each_refused(a.inside, *forbidden(a))
    each_refused(world.other, (a.address, 80))
    nssets.end(a)
    wait_for(lambda: passes(world) == [], "with the last sandbox both go")
    assert nssets.close() == 0
    assert "counter" in world.host.run("nft", "list", "chain", "ip", "filter", "DOCKER-USER")


@pytest.fixture
def old_engine(world):
    """The same in the older packet filter, which nftables does not show."""

    def iptables(*words):
        return world.host.run("iptables-legacy", "-w", *words)

    iptables("-N", "DOCKER-USER")
    iptables("-A", "FORWARD", "-j", "DOCKER-USER")
    iptables("-P", "FORWARD", "DROP")
    yield iptables
    iptables("-P", "FORWARD", "ACCEPT")
    iptables("-F", "FORWARD")
    iptables("-F", "DOCKER-USER")
    iptables("-X", "DOCKER-USER")


def test_an_engine_with_the_older_packet_filter_lets_sandboxes_pass(world, old_engine):
    def old_passes():
        return [s for s in old_engine("-S", "DOCKER-USER").splitlines() if ALIAS in s]

    nssets = NssetPool(world, ready=0).ok("begin")
    assert old_passes() == []
    a = nssets.take("a")
    a.inside.serve(80)
    assert len(old_passes()) == 2
    each_open(a.inside, (NET, 80), (LAN, 80))
    each_refused(a.inside, *forbidden(a))
    each_refused(world.other, (a.address, 80))
    nssets.end(a)
    wait_for(lambda: old_passes() == [], "with the last sandbox both go")
    assert nssets.close() == 0


def test_an_engine_that_starts_later_is_seen(world, engine, nssets):
    a = nssets.take("a")
    each_open(a.inside, (NET, 80))
    engine()
    wait_for(lambda: len(passes(world)) == 2, "both rules stand")
    each_open(a.inside, (NET, 80))


@pytest.mark.parametrize("ruin", ["flush chain ip filter DOCKER-USER", "flush ruleset"])
def test_an_engine_that_makes_its_chain_anew_is_seen(world, engine, nssets, ruin):
    engine()
    a = nssets.take("a")
    world.host.run("nft", ruin)
    if ruin == "flush ruleset":
        engine()
    wait_for(lambda: len(passes(world)) == 2, "both rules stand again")
    each_open(a.inside, (NET, 80))
    each_refused(a.inside, *forbidden(a))


def test_rules_that_a_killed_daemon_left_with_an_engine_are_taken_over(world, engine):
    engine()
    first = NssetPool(world, ready=0).ok("begin")
    a = first.take("a")
    assert a.inside
    first.kill()
    assert len(passes(world)) == 2
    second = NssetPool(world, ready=0)
    second.adopt(a)
    second.ok("begin")
    assert len(passes(world)) == 2
    a.members[0].end()
    second.close()
    assert passes(world) == []


def test_an_init_that_cannot_is_an_error_of_the_take_and_leaves_nothing(world):
    nssets = NssetPool(world, ready=0, init="/bin/false").ok("begin")
    for line in ("take a nat 1 -", "take b nat 2 -", "take c none 1 -"):
        assert "agentix-init ended" in nssets.say(line), line
    assert nssets.stop() == 0
    nssets = NssetPool(world, ready=0, init="/nowhere/init").ok("begin")
    assert "start '/nowhere/init'" in nssets.say("take a nat 1 -")
    assert nssets.stop() == 0
    wait_for(lambda: not world.links(), "no link is left")


def only_child(nssets):
    """The long-lived child; programs that inspect the packet filter run beside it for a moment."""

    def found():
        pids = children(nssets.process.pid)
        return pids if len(pids) == 1 else None

    return wait_for(found, "one child is left")[0]


def test_what_makes_namespaces_may_be_killed_and_ends_with_the_daemon(world):
    nssets = NssetPool(world, ready=0).ok("begin")
    nssets.take("a")
    init = only_child(nssets)
    nssets.take("b")
    assert only_child(nssets) == init, "it makes one after the other"
    os.kill(init, signal.SIGKILL)
    wait_for(lambda: not session_members(init), "it is gone")
    nssets.take("c")
    init = only_child(nssets)
    nssets.kill()
    wait_for(lambda: not session_members(init), "it ends by itself")
    assert NssetPool(world, ready=0).ok("begin").close() == 0
    wait_for(lambda: not world.links(), "no link is left")


def test_a_take_before_the_beginning_is_refused(world):
    nssets = NssetPool(world)
    assert "not yet set up" in nssets.say("take a nat 1 -")
    assert nssets.stop() == 0
