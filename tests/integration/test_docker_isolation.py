"""Tries from inside what a sandbox on a real Docker Engine can reach, in a test network:

    sandbox -- its bridge -- host of the box -- up0 | eth0 -- another network namespace: `outside`

`outside` has an address of the internet, one of a LAN and those of metadata services. On each of
them, on the host and in other containers, a server listens and would answer.
"""

import contextlib
import json
import subprocess

import pytest
from agxtest.protos import agbox
from agxtest.server import wait_for
from docker_fixtures import *  # noqa: F403

pytestmark = pytest.mark.deadline(120)

PORT = 8765
HOST, HOST6 = "203.0.113.1", "2001:db8:1::1"
INTERNET, INTERNET6 = "203.0.113.10", "2001:db8:1::10"
LAN, LAN6 = "192.168.77.10", "fd77::10"
METADATA = ["169.254.169.254", "100.100.100.200"]
ANSWER = "an answer\n"
# A server on all addresses, also IPv6.
SERVE = f"echo an answer >index.html; exec httpd -f -p [::]:{PORT}"


def sh(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


def listen(directory, *prefix):
    """Starts a server, which ends with the box at the latest."""
    return subprocess.Popen([*prefix, "busybox", "sh", "-c", SERVE], cwd=directory)


@pytest.fixture(name="outside", scope="module", autouse=True)
def fixture_outside(tmp_path_factory):
    """The network around the host of the box."""
    sh("ip", "netns", "add", "outside")
    pair = ("type", "veth", "peer", "name", "eth0", "netns", "outside")
    sh("ip", "link", "add", "up0", *pair)
    inside = ["ip", "-n", "outside"]
    for address in (f"{INTERNET}/24", f"{LAN}/24", *(f"{m}/32" for m in METADATA)):
        sh(*inside, "addr", "add", address, "dev", "eth0")
    for address in (f"{INTERNET6}/64", f"{LAN6}/64"):
        sh(*inside, "addr", "add", address, "dev", "eth0", "nodad")
    sh("ip", "addr", "add", f"{HOST}/24", "dev", "up0")
    sh("ip", "addr", "add", f"{HOST6}/64", "dev", "up0", "nodad")
    for ns, link, gateway in (([], "up0", INTERNET), (["-n", "outside"], "eth0", HOST)):
        sh("ip", *ns, "link", "set", link, "up")
        sh("ip", *ns, "route", "add", "default", "via", gateway)
    sh("ip", "-n", "outside", "link", "set", "lo", "up")
    sh("ip", "-6", "route", "add", "default", "via", INTERNET6)
    servers = [
        listen(tmp_path_factory.mktemp("host")),
        listen(tmp_path_factory.mktemp("outside"), "ip", "netns", "exec", "outside"),
    ]
    for address in ("127.0.0.1", INTERNET):
        wait_for(lambda at=address: from_host(at) == ANSWER, "the servers answer")
    yield
    for each in servers:
        each.kill()
        each.wait()
    sh("ip", "link", "del", "up0")
    sh("ip", "netns", "del", "outside")


def url(address, port=PORT):
    return f"http://[{address}]:{port}/" if ":" in address else f"http://{address}:{port}/"


def reaches(stage, box, address, port=PORT, seconds=3):
    """Whether a sandbox reaches the address. The firewall refuses at once or drops the packets, so
    a short timeout is enough."""
    run = stage.client.run(box, "timeout", str(seconds), "wget", "-qO-", url(address, port))
    return run.exit_code == 0


def reaches_surely(stage, box, address):
    """The same for an address that must answer, with time for a busy machine."""
    return reaches(stage, box, address, seconds=30)


def from_host(address, port=PORT):
    with contextlib.suppress(subprocess.SubprocessError):
        command = ["busybox", "timeout", "30", "busybox", "wget", "-qO-", url(address, port)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return ""


def addresses(stage, container):
    """The container's address and gateway."""
    networks = stage.engine.inspect(container)["NetworkSettings"]["Networks"]
    (network,) = networks.values()
    return network["IPAddress"], network["Gateway"]


def test_host_and_gateway_are_refused_and_the_internet_is_not(stage):
    box = stage.ready()
    assert from_host("127.0.0.1") == ANSWER
    assert from_host(HOST) == ANSWER
    _, gateway = addresses(stage, stage.primary(box))
    bridge = json.loads(sh("ip", "-j", "-4", "addr", "show", "docker0"))
    docker0 = bridge[0]["addr_info"][0]["local"]
    for address in (gateway, HOST, docker0):
        assert from_host(address) == ANSWER
        assert not reaches(stage, box, address), address
    assert reaches_surely(stage, box, INTERNET)


def test_metadata_services_are_refused(stage):
    box = stage.ready()
    for address in METADATA:
        sh("ip", "route", "add", address, "via", INTERNET, "dev", "up0")
        assert from_host(address) == ANSWER
        assert not reaches(stage, box, address), address
        sh("ip", "route", "del", address)


@pytest.mark.parametrize("lan", ["allow", "block"])
def test_lan_is_as_it_was_configured(start_stage, lan):
    stage = start_stage(config={"network": {"lan": lan}})
    box = stage.ready()
    assert from_host(LAN) == ANSWER
    if lan == "allow":
        assert reaches_surely(stage, box, LAN)
    else:
        assert not reaches(stage, box, LAN)
    assert reaches_surely(stage, box, INTERNET)


def test_other_sandboxes_and_containers_are_refused(stage, engine):
    one, two = stage.ready(), stage.ready(command=["sh", "-c", SERVE])
    engine.run("run", "-d", "--name", "foreign", stage.image, "sh", "-c", SERVE)
    try:
        for container in (stage.primary(two), "foreign"):
            address, _ = addresses(stage, container)
            wait_for(lambda at=address: from_host(at) == ANSWER, "it serves")
            assert not reaches(stage, one, address), container
    finally:
        engine.run("rm", "-f", "foreign")


def test_declared_port_answers_the_host_and_no_other_sandbox(stage):
    one = stage.ready()
    stage.ready(command=["sh", "-c", SERVE], ports=[{"container_port": PORT, "host_port": 18080}])
    wait_for(lambda: from_host("127.0.0.1", 18080) == ANSWER, "the declared port answers")
    _, gateway = addresses(stage, stage.primary(one))
    for address in (gateway, HOST, "host.docker.internal"):
        assert not reaches(stage, one, address, 18080), address


def test_published_port_of_a_foreign_container_is_refused(stage, engine):
    box = stage.ready()
    engine.run(
        "run", "-d", "--name", "foreign", "-p", f"18081:{PORT}", stage.image, "sh", "-c", SERVE
    )
    try:
        wait_for(lambda: from_host(HOST, 18081) == ANSWER, "it serves")
        _, gateway = addresses(stage, stage.primary(box))
        for address in (gateway, HOST):
            assert not reaches(stage, box, address, 18081), address
    finally:
        engine.run("rm", "-f", "foreign")


def test_companion_is_reached_and_is_as_alone_as_its_primary(stage):
    companion = {"name": "web", "image": stage.image, "command": ["sh", "-c", SERVE]}
    box = stage.ready(companion_containers=[companion])
    wait_for(lambda: reaches(stage, box, "web"), "the companion answers")
    container = f"agentix-{box}.web"
    for address in (HOST, addresses(stage, container)[1]):
        tried = stage.engine.run(
            "exec", container, "timeout", "3", "wget", "-qO-", url(address), check=False
        )
        assert tried == "", address


def test_addresses_of_ipv6_that_somebody_adds_lead_nowhere(stage):
    """Engines give none by default; here root of the host adds them to bridge and container."""
    box = stage.ready()
    pid = stage.inspect(box)["State"]["Pid"]
    (network,) = stage.engine.networks()
    bridge = network["Options"].get("com.docker.network.bridge.name", f"br-{network['Id'][:12]}")
    inside = ["nsenter", "-t", str(pid), "-n"]
    for prefix in ([], inside):
        link = "eth0" if prefix else bridge
        end = "2" if prefix else "1"
        for name in ("all", link):
            knob = f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6"
            sh(*prefix, "sh", "-c", f"echo 0 >{knob}")
        sh(*prefix, "ip", "addr", "add", f"2001:db8:2::{end}/64", "dev", link, "nodad")
    sh(*inside, "ip", "-6", "route", "add", "default", "via", "2001:db8:2::1")
    sh("sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding")
    sh("ip", "-n", "outside", "-6", "route", "add", "2001:db8:2::/64", "via", HOST6)
    try:
        assert from_host("2001:db8:2::1") == ANSWER
        for address in ("2001:db8:2::1", HOST6):
            assert not reaches(stage, box, address), address
    finally:
        sh("ip", "-n", "outside", "-6", "route", "del", "2001:db8:2::/64")


def test_sandbox_without_a_network_has_none(stage):
    box = stage.ready(network=agbox().NETWORK_MODE_NONE)
    for address in (HOST, INTERNET):
        assert not reaches(stage, box, address), address
    assert stage.runs(box, "sh", "-c", "[ $(ls /sys/class/net) = lo ]") == 0


def test_egress_list_is_all_that_is_reached(stage):
    box = stage.ready(
        network=agbox().NETWORK_MODE_EGRESS, egress=[f"{INTERNET}:{PORT}", f"{LAN}:1"]
    )
    assert reaches_surely(stage, box, INTERNET)
    assert not reaches(stage, box, LAN)
    assert not reaches(stage, box, HOST)


def test_engine_is_not_to_be_seen(stage):
    box = stage.ready()
    assert stage.runs(box, "sh", "-c", "[ ! -e /run/docker.sock ] && [ ! -e /var/run ]") == 0


def test_rules_stand_again_after_a_restart_and_after_their_loss(stage):
    box = stage.ready()
    stage.daemon.kill()
    for table in [t for t in nft.tables() if "agentix" in t]:  # noqa: F405
        nft.run(f"delete table {table}")  # noqa: F405
    stage.start()
    wait_for(lambda: not reaches(stage, box, HOST), "the rules stand")
    assert reaches_surely(stage, box, INTERNET)
    stage.restart()
    assert not reaches(stage, box, HOST)
    stage.client.deleted(box)
    # A daemon that has just been started takes over what stands before it removes any of it.
    wait_for(lambda: not [t for t in nft.tables() if "agentix" in t], "no rule is left")  # noqa: F405
