"""The firewall, tested from inside: namespaces act as a host, its sandboxes and the world.

       world (Internet, LAN, metadata)
         |
 up0   host   8080 is published: it leads to `other`
  |      |      |
agx-a  agx-b  br-other        bridges of the host
a a2     b     other          a sandbox, its companion, another one, a stranger
"""

import os
import re
import subprocess
from pathlib import Path

import pytest
from agxtest.driver import Driver
from agxtest.networld import (
    Namespace,
    add_addresses,
    each_open,
    each_refused,
    link,
    needs_namespaces,
)
from agxtest.server import held_up, wait_for

DRIVER = os.environ["FIREWALL_DRIVER"]
TABLE = "agentix-1234abcd"
PORTS = (53, 80, 443)
A, A2, B, OTHER = "10.213.0.2", "10.213.0.3", "10.213.0.18", "172.30.0.2"
A6, A26, B6, OTHER6 = "fd13:0:0:a::2", "fd13:0:0:a::3", "fd13:0:0:b::2", "fd30::2"
LAN, LAN6, NET, NET6 = "192.168.77.1", "fd77::1", "203.0.113.10", "2001:db8:77::10"
METADATA = ("169.254.169.254", "100.100.100.200", "fd00:ec2::254")
HOST = ("192.168.77.2", "fd77::2")
GATEWAYS = ("10.213.0.1", "fd13:0:0:a::1")
MEMBER_A = "a agx-a 10.213.0.0/28,fd13:0:0:a::/64"
MEMBER_B = "b agx-b 10.213.0.16/28,fd13:0:0:b::/64"
PUBLISHED = """
table inet engine {
    chain prerouting {
        type nat hook prerouting priority dstnat
        fib daddr type local tcp dport 8080 dnat ip to 172.30.0.2:80
        fib daddr type local tcp dport 8081 dnat ip to 10.213.0.2:80
    }
    chain output {
        type nat hook output priority -100
        fib daddr type local tcp dport 8081 dnat ip to 10.213.0.2:80
    }
}
"""


class World:
    def __init__(self):
        names = ("host", "world", "a", "a2", "b", "other")
        self.spaces = [Namespace(name) for name in names]
        self.host, self.world, self.a, self.a2, self.b, self.other = self.spaces
        self.host.sysctl(net__ipv4__ip_forward=1, net__ipv6__conf__all__forwarding=1)
        self.outside()
        self.bridge("agx-a", "10.213.0.1/28", "fd13:0:0:a::1/64")
        self.bridge("agx-b", "10.213.0.17/28", "fd13:0:0:b::1/64")
        self.bridge("br-other", "172.30.0.1/24", "fd30::1/64")
        self.plug("agx-a", self.a, f"{A}/28", f"{A6}/64")
        self.plug("agx-a", self.a2, f"{A2}/28", f"{A26}/64")
        self.plug("agx-b", self.b, f"{B}/28", f"{B6}/64")
        self.plug("br-other", self.other, f"{OTHER}/24", f"{OTHER6}/64")
        self.host.run("nft", "-f", "-", text=PUBLISHED)
        for each in self.spaces:
            each.serve(*PORTS)

    def outside(self):
        link(self.host, "up0", self.world, "eth0")
        add_addresses(self.host, "up0", "192.168.77.2/24", "fd77::2/64")
        add_addresses(self.world, "eth0", "192.168.77.1/24", "fd77::1/64")
        add_addresses(self.world, "lo", f"{NET}/32", f"{NET6}/128")
        add_addresses(self.world, "lo", *METADATA)
        self.host.run("ip", "route", "add", "default", "via", LAN)
        self.host.run("ip", "-6", "route", "add", "default", "via", LAN6)
        for net in ("10.213.0.0/16", "172.30.0.0/16"):
            self.world.run("ip", "route", "add", net, "via", HOST[0])
        for net in ("fd13::/32", "fd30::/32"):
            self.world.run("ip", "-6", "route", "add", net, "via", HOST[1])

    def bridge(self, name, *gateways):
        self.host.run("ip", "link", "add", name, "type", "bridge")
        self.host.run("ip", "link", "set", name, "up")
        add_addresses(self.host, name, *gateways)

    def plug(self, bridge, space, v4, v6):
        link(self.host, f"v-{space.name}", space, "eth0")
        self.host.run("ip", "link", "set", f"v-{space.name}", "master", bridge)
        add_addresses(space, "eth0", v4, v6)
        for family in ("-4", "-6"):
            printed = self.host.run(
                "ip", "-o", family, "address", "show", bridge, "scope", "global"
            )
            gateway = re.search(r"inet6? ([^/]+)/", printed)[1]
            space.run("ip", family, "route", "add", "default", "via", gateway)

    def tables(self):
        return self.host.run("nft", "list", "tables").split("\n")

    def has_table(self):
        return f"table inet {TABLE}" in self.tables()

    def drop_table(self):
        if self.has_table():
            self.host.run("nft", "delete", "table", "inet", TABLE)

    def close(self):
        for each in self.spaces:
            each.close()


class Firewall(Driver):
    """tests/integration/firewall_driver.c."""

    def __init__(self, world, *options):
        super().__init__(world.host, DRIVER, *options)


@pytest.fixture(scope="module")
def world():
    needs_namespaces()
    w = World()
    yield w
    w.close()


@pytest.fixture
def firewall(world):
    """A firewall for `a`, and for `b`, which may reach only port 443 of the Internet."""
    f = Firewall(world)
    closed = f"closed {NET}:443 {NET6}"
    f.ok("sync", f"put {MEMBER_A}", f"put {MEMBER_B} {closed}")
    yield f
    assert f.close() == 0
    world.drop_table()


FORBIDDEN = (
    *((address, 80) for address in (*HOST, *GATEWAYS, "10.213.0.17", "172.30.0.1", "fd30::1")),
    *((address, 80) for address in (B, B6, OTHER, OTHER6)),
    *((address, 80) for address in METADATA),
    *((address, 8080) for address in (HOST[0], GATEWAYS[0], "172.30.0.1")),
)


def test_without_a_firewall_all_of_it_answers(world):
    """Otherwise the other tests would prove nothing."""
    each_open(world.a, *FORBIDDEN, (NET, 80), (NET6, 80), (LAN, 80), (LAN6, 80), (A2, 80))
    each_open(world.world, (A, 80), (A6, 80))
    each_open(world.host, (A, 80), (A6, 80), (HOST[0], 8081))


def test_a_sandbox_reaches_no_host_no_neighbour_no_published_port_and_no_metadata(world, firewall):
    each_refused(world.a, *FORBIDDEN)


def test_a_sandbox_reaches_the_internet_its_companion_and_the_lan_where_that_is_allowed(
    world, firewall
):
    each_open(world.a, (NET, 80), (NET6, 443), (LAN, 80), (LAN6, 80), (A2, 80), (A26, 80))


def test_datagrams_are_refused_alike(world, firewall):
    kept_out = (*HOST, *GATEWAYS, B, B6, OTHER, *METADATA)
    each_refused(world.a, *((address, 80) for address in kept_out), kind="udp")
    for address in (NET, NET6):
        wait_for(lambda: world.a.connect(address, 80, kind="udp") == "open", address)  # noqa: B023


def test_the_host_reaches_a_sandbox_so_declared_ports_answer(world, firewall):
    each_open(world.host, (A, 80), (A6, 80), (B, 443), (B6, 443), (HOST[0], 8081))


def test_nobody_else_reaches_a_sandbox(world, firewall):
    each_refused(world.other, (A, 80), (A6, 80), (B, 80), (B6, 80))
    each_refused(world.world, (A, 80), (A6, 80), (HOST[0], 8081))


def test_a_link_local_address_of_the_host_does_not_answer(world, firewall):
    words = ("ip", "-o", "-6", "address", "show", "scope", "link", "dev")

    def settled(space, device):
        """Its addresses, after the kernel's detection of duplicate addresses."""
        printed = space.run(*words, device)
        return printed if "inet6" in printed and "tentative" not in printed else None

    wait_for(lambda: settled(world.a, "eth0"), "a has a link-local address")
    printed = wait_for(lambda: settled(world.host, "agx-a"), "so has the bridge")
    address = re.search(r"inet6 ([^/]+)/", printed)[1] + "%eth0"
    assert world.a.connect(address, 80) == "silent"  # its source is no address of the member's


def test_an_address_that_is_added_inside_leads_nowhere(world, firewall):
    mine, mine6 = "10.99.0.9", "fd99::9"
    add_addresses(world.a, "eth0", f"{mine}/32", f"{mine6}/128")
    for space, gateways in ((world.world, HOST), (world.host, (A, A6))):
        for address, gateway in zip((f"{mine}/32", f"{mine6}/128"), gateways, strict=True):
            space.run("ip", "route", "add", address, "via", gateway)
    attempts = ((NET, mine), (NET6, mine6), (HOST[0], mine), (HOST[1], mine6))
    for address, source in attempts:
        assert world.a.connect(address, 80, source=source) == "silent", address
    firewall.ok("remove a")
    for address, source in attempts:  # otherwise the above would prove nothing
        wait_for(lambda: world.a.connect(address, 80, source=source) == "open", address)  # noqa: B023
    for space, device in ((world.world, "eth0"), (world.host, "agx-a")):
        for address in (f"{mine}/32", f"{mine6}/128"):
            space.run("ip", "route", "delete", address, "dev", device)
    for each in (f"{mine}/32", f"{mine6}/128"):
        world.a.run("ip", "address", "delete", each, "dev", "eth0")


def test_a_member_with_an_egress_list_reaches_what_is_on_it(world, firewall):
    each_open(world.b, (NET, 443), (NET6, 443), (NET6, 80))
    each_refused(world.b, (NET, 80), (NET, 53), (LAN, 443), (LAN6, 80), (LAN, 53), (A, 80))
    each_refused(world.b, *((address, 80) for address in (*HOST, *METADATA, "10.213.0.17")))


def test_an_egress_list_opens_neither_host_nor_neighbour_nor_metadata(world, firewall):
    firewall.ok(f"put {MEMBER_B} closed 0.0.0.0/0 ::/0")
    each_open(world.b, (NET, 80), (NET6, 80), (LAN, 80))
    each_refused(world.b, *((address, 80) for address in (*HOST, *METADATA, A, A6, OTHER)))


def test_an_egress_list_is_changed_in_place(world, firewall):
    lists = (
        (f"{NET}:80", {(NET, 80)}),
        (f"203.0.113.0/24 {NET}:443", {(NET, 80), (NET, 443)}),
        (f"{NET} 203.0.113.0/28 203.0.0.0/8 203.0.113.8/29:443", {(NET, 80), (NET, 443)}),
        (f"203.0.113.0/28:443 {NET}:443", {(NET, 443)}),
        ("", set()),
    )
    for entries, opened in lists:
        firewall.ok(f"put {MEMBER_B} closed {entries}".strip())
        each_open(world.b, *opened)
        each_refused(world.b, *({(NET, 80), (NET, 443)} - opened))
    firewall.ok(f"put {MEMBER_B}")
    each_open(world.b, (NET, 80), (LAN, 80))


def test_a_blocked_lan_leaves_the_internet_the_companion_and_the_hosts_resolver(world):
    text = Path("/etc/resolv.conf").read_text()
    resolvers = [
        each
        for each in re.findall(r"^nameserver ([0-9.]+)", text, re.M)
        if not each.startswith("127.")
    ]
    for each in resolvers:
        world.world.run("ip", "address", "replace", f"{each}/32", "dev", "lo")
    firewall = Firewall(world, "--block-lan")
    firewall.ok("sync", f"put {MEMBER_A}", f"put {MEMBER_B} closed {LAN} {LAN6} {NET}")
    each_refused(world.a, (LAN, 80), (LAN6, 80), (LAN, 53))
    each_refused(world.b, (LAN, 80), (LAN6, 80))
    each_open(world.a, (NET, 80), (NET6, 80), (A2, 80), (A26, 80))
    each_open(world.b, (NET, 80))
    for each in resolvers:
        each_open(world.a, (each, 53))
        each_refused(world.a, (each, 80))
        each_refused(world.b, (each, 53))
        world.world.run("ip", "address", "delete", f"{each}/32", "dev", "lo")
    firewall.close()
    world.drop_table()


def test_an_uplink_that_is_a_bridge_is_a_way_out(world, firewall):
    """Hosts of virtual machines have such uplinks."""
    world.host.run("ip", "link", "add", "br0", "type", "bridge")
    world.host.run("ip", "link", "set", "br0", "up")
    world.host.run("ip", "link", "set", "up0", "master", "br0")
    world.host.run("ip", "address", "flush", "dev", "up0")
    add_addresses(world.host, "br0", "192.168.77.2/24", "fd77::2/64")
    world.host.run("ip", "route", "replace", "default", "via", LAN)
    world.host.run("ip", "-6", "route", "replace", "default", "via", LAN6)
    try:
        each_open(world.a, (NET, 80), (NET6, 80))
        each_refused(world.a, (OTHER, 80), (B, 80), (HOST[0], 80))
    finally:
        world.host.run("ip", "link", "delete", "br0")
        add_addresses(world.host, "up0", "192.168.77.2/24", "fd77::2/64")
        world.host.run("ip", "route", "replace", "default", "via", LAN)
        world.host.run("ip", "-6", "route", "replace", "default", "via", LAN6)
    each_open(world.a, (NET, 80))


def test_with_its_last_member_the_table_goes(world):
    firewall = Firewall(world)
    firewall.ok("sync")
    assert not world.has_table()
    firewall.ok(f"put {MEMBER_A}", f"put {MEMBER_B}", "remove a")
    assert world.has_table()
    each_open(world.a, (HOST[0], 80))
    each_refused(world.b, (HOST[0], 80))
    firewall.ok("remove b", "remove b", "remove stranger")
    assert not world.has_table()
    firewall.ok(f"put {MEMBER_A}")
    each_refused(world.a, (HOST[0], 80))
    firewall.ok("remove a")
    assert firewall.close() == 0
    assert not world.has_table()


def test_a_killed_daemon_leaves_its_firewall_and_the_next_takes_it_up(world):
    first = Firewall(world)
    first.ok("sync", f"put {MEMBER_A}", f"put {MEMBER_B}")
    first.kill()
    each_refused(world.a, (HOST[0], 80))
    second = Firewall(world)
    second.ok(f"want {MEMBER_A}", "sync")
    each_refused(world.a, (HOST[0], 80), (B, 80))
    assert "agx-b" not in world.host.run("nft", "list", "table", "inet", TABLE)
    second.kill()
    third = Firewall(world)
    third.ok("sync")
    assert not world.has_table()
    third.close()


def test_a_daemon_with_thousands_of_descriptors_has_its_firewall(world):
    """libnftables waits by select(), which supports only the first 1024 descriptors."""
    firewall = Firewall(world)
    firewall.ok("crowd", "sync", f"put {MEMBER_A}")
    each_refused(world.a, (HOST[0], 80))
    firewall.ok("remove a")
    assert not world.has_table()
    assert firewall.close() == 0


def test_a_put_before_the_first_sync_is_refused(world):
    firewall = Firewall(world)
    assert "does not match the running" in firewall.say(f"put {MEMBER_A}")
    firewall.close()
    assert not world.has_table()


@pytest.mark.parametrize(
    "line, why",
    [
        ("put c agx-a 10.213.0.32/28", "already belongs to sandbox 'a'"),
        ("put c agx*c 10.213.0.32/28", "not the name of a bridge"),
        ('put c a"} 10.213.0.32/28', "not the name of a bridge"),
        ("put c agx-abcdefghijkl 10.213.0.32/28", "not the name of a bridge"),
    ],
)
def test_a_member_that_cannot_be_is_refused(world, firewall, line, why):
    assert why in firewall.say(line)
    each_refused(world.a, (HOST[0], 80))


@pytest.mark.parametrize("ruin", ["delete table inet " + TABLE, "flush ruleset"])
def test_a_table_that_somebody_takes_away_is_put_back(world, firewall, ruin):
    world.host.run("nft", ruin)
    assert firewall.hear() == "restored"
    each_refused(world.a, (HOST[0], 80), (B, 80))
    each_open(world.b, (NET, 443))
    world.host.run(
        "nft", "-f", "-", text="add table inet engine\ndelete table inet engine" + PUBLISHED
    )


def test_a_rule_that_somebody_adds_to_the_table_is_taken_out(world, firewall):
    world.host.run("nft", "insert", "rule", "inet", TABLE, "leaving", "accept")
    assert firewall.hear() == "restored"
    each_refused(world.a, (HOST[0], 80))


def test_tables_of_others_are_left_alone(world, firewall):
    before = world.host.run("nft", "list", "table", "inet", "engine")
    firewall.ok("remove a", f"put {MEMBER_A}")
    world.host.run("nft", "add", "rule", "inet", "engine", "output", "counter")
    world.host.run("nft", "-f", "-", text="delete table inet engine" + PUBLISHED)
    assert world.host.run("nft", "list", "table", "inet", "engine") == before
    firewall.ok("remove a")  # the next line is not "restored"


def crowd(world):
    """Adds a table with many elements, as another program, and removes it."""
    elements = ", ".join(f"10.{i // 256}.{i % 256}.1" for i in range(20000))
    lines = (
        "add table inet crowd",
        "add set inet crowd s { type ipv4_addr; }",
        f"add element inet crowd s {{ {elements} }}",
        "delete table inet crowd",
    )
    world.host.run("nft", "-f", "-", text="\n".join(lines))


def test_a_firewall_that_lost_news_of_the_kernel_hears_the_next(world, firewall):
    with held_up(firewall.process.pid):
        for _ in range(16):
            crowd(world)
    assert firewall.hear() == "restored", "there is room for all of it: nothing was lost"
    world.host.run("nft", "delete", "table", "inet", TABLE)
    assert firewall.hear() == "restored"
    each_refused(world.a, (HOST[0], 80))


def test_changes_of_others_are_no_change_of_ours_however_many_they_are(world, firewall):
    """The socket's buffer holds the kernel's messages about them until they are read."""
    with held_up(firewall.process.pid):
        crowd(world)
    for _ in range(100):  # each needs a script, and its answer would come after a "restored"
        firewall.ok("remove a", f"put {MEMBER_A}")


def test_a_process_without_the_capability_is_told_the_command(world):
    drop = ["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"]
    told = subprocess.run([*drop, DRIVER], capture_output=True, text=True)
    assert told.returncode == 1
    assert f"setcap cap_net_admin+ep {os.path.realpath(DRIVER)}" in told.stdout


def test_many_members_share_transactions(world, firewall):
    lines = [f"put m{i} m{i} 10.214.{i // 16}.{16 * (i % 16)}/28" for i in range(300)]
    for line in lines:
        print(line, file=firewall.process.stdin)
    firewall.process.stdin.flush()
    assert [firewall.hear() for _ in lines] == ["ok"] * len(lines)
    elements = world.host.run("nft", "list", "set", "inet", TABLE, "bridges")
    assert len(re.findall(r'"m\d+"', elements)) == len(lines)
    each_refused(world.a, (HOST[0], 80))
