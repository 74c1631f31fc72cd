"""agentix-forward between two namespaces that act as a host and a sandbox. They have no link, so
all traffic goes through the forwarder.

Threads that have entered a namespace make the sockets; the test itself uses them.
"""

import contextlib
import hashlib
import os
import resource
import signal
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from agxtest import linux
from agxtest.driver import Driver
from agxtest.networld import Namespace, add_addresses
from agxtest.server import wait_for

DRIVER, PROGRAM = os.environ["FORWARD_DRIVER"], os.environ["AGENTIX_FORWARD"]
BOX, HOST = "10.213.0.2", "127.0.0.1"
TIMEOUT_S = 60
MANY = 3000
# Descriptors of a forwarder with two ports: 0 to 2, PID 1, epoll, two sockets.
IDLE = 7


class Place:
    """A namespace, and a thread in it that makes sockets."""

    def __init__(self, name):
        self.space = Namespace(name)
        self.pool = ThreadPoolExecutor(1, initializer=self._enter)

    def _enter(self):
        with open(f"/proc/{self.space.holder.pid}/ns/net", "rb") as ns:
            linux.setns(ns.fileno(), linux.CLONE_NEWNET)

    def socket(self, kind=socket.SOCK_STREAM):
        made = self.pool.submit(socket.socket, socket.AF_INET, kind).result()
        made.settimeout(TIMEOUT_S)
        return made

    def connect(self, port, address=HOST):
        s = self.socket()
        s.connect((address, port))
        return s

    def listen(self, port, address="0.0.0.0"):
        s = self.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((address, port))
        s.listen(4096)
        return s

    def datagrams(self, port=0, address="0.0.0.0"):
        s = self.socket(socket.SOCK_DGRAM)
        s.bind((address, port))
        return s

    def close(self):
        self.pool.shutdown()
        self.space.close()


class Daemon(Driver):
    """tests/integration/forward_driver.c."""

    def __init__(self, host, program=PROGRAM):
        super().__init__(host.space, DRIVER, program)

    def start(self, line):
        answer = self.say(line)
        assert answer.startswith("ok "), answer
        return Forwarder(answer.split()[1:])


class Forwarder:
    def __init__(self, words):
        self.mark, self.pid = " ".join(words), int(words[0])
        self.pidfd = os.pidfd_open(self.pid)

    def alive(self):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return "State:\tZ" not in Path(f"/proc/{self.pid}/status").read_text()
        return False

    def status(self, key):
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(f"{key}:"):
                return line.split(":")[1].split()
        raise AssertionError(key)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def gone(self):
        wait_for(lambda: not self.alive(), "the forwarder has ended")


@pytest.fixture(scope="module")
def host():
    if os.geteuid() != 0:
        pytest.skip("needs root")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    place = Place("host")
    yield place
    place.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def box():
    """A sandbox; its PID 1 is `box.space.holder`."""
    place = Place("box")
    place.space.run("ip", "link", "add", "eth0", "type", "bridge")
    place.space.run("ip", "link", "set", "eth0", "up")
    add_addresses(place.space, "eth0", f"{BOX}/28")
    yield place
    place.close()


@pytest.fixture
def daemon(host):
    d = Daemon(host)
    yield d
    assert d.close() == 0


@pytest.fixture
def forwarder(daemon, box):
    """Port 8080 leads to port 80 of the sandbox, tcp and udp."""
    f = daemon.start(f"start f {box.space.holder.pid} {BOX} tcp:8080:80 udp:8080:80")
    wait_for(lambda: f.descriptors() == IDLE, "no descriptor that it does not need")
    yield f
    daemon.say("stop f")
    f.gone()


def receive_all(s):
    """Reads until the other side ends."""
    parts = []
    while part := s.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def receive(s, n):
    parts = []
    while n > 0 and (part := s.recv(n)):
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


def pair(host, box, listener):
    """A connection: the client's side and the server's."""
    client = host.connect(8080)
    server, _ = listener.accept()
    server.settimeout(TIMEOUT_S)
    return client, server


def test_bytes_pass_in_both_directions(host, box, forwarder):
    with box.listen(80) as listener:
        client, server = pair(host, box, listener)
        with client, server:
            client.sendall(b"question")
            assert receive(server, 8) == b"question"
            server.sendall(b"answer")
            assert receive(client, 6) == b"answer"


def test_much_passes_at_once_in_both_directions_unchanged(host, box, forwarder):
    data = [os.urandom(1 << 20) * 24 for _ in range(2)]
    sums = [None, None]
    with box.listen(80) as listener:
        ends = pair(host, box, listener)

        def send(i):
            ends[i].sendall(data[i])
            ends[i].shutdown(socket.SHUT_WR)

        def take(i):
            sums[1 - i] = hashlib.sha256(receive_all(ends[i])).digest()

        threads = [threading.Thread(target=f, args=(i,)) for f in (send, take) for i in (0, 1)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert sums == [hashlib.sha256(each).digest() for each in data]
        for each in ends:
            each.close()


@pytest.mark.parametrize("first", [0, 1])
def test_a_connection_that_one_side_has_closed_goes_on_in_the_other(host, box, forwarder, first):
    with box.listen(80) as listener:
        ends = pair(host, box, listener)
        ends[first].sendall(b"all that I have to say")
        ends[first].shutdown(socket.SHUT_WR)
        assert receive_all(ends[1 - first]) == b"all that I have to say"
        ends[1 - first].sendall(b"and the answer")
        ends[1 - first].close()
        assert receive_all(ends[first]) == b"and the answer"
        ends[first].close()


def test_where_nobody_listens_the_client_is_told_at_once(host, box, forwarder):
    def is_told():
        with contextlib.suppress(ConnectionResetError), host.connect(8080) as client:
            return client.recv(1) == b""
        return True

    assert is_told()
    with box.listen(80, "127.0.0.1"):  # as behind a published port of an engine
        assert is_told()


@pytest.mark.parametrize("first", [0, 1])
def test_a_reset_reaches_the_other_side(host, box, forwarder, first):
    with box.listen(80) as listener:
        ends = pair(host, box, listener)
        ends[first].sendall(b"x")
        assert receive(ends[1 - first], 1) == b"x"
        ends[first].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        ends[first].close()
        with pytest.raises(ConnectionResetError):
            ends[1 - first].recv(1)
        ends[1 - first].close()
    wait_for(lambda: forwarder.descriptors() == IDLE, "both are closed")


def test_it_listens_on_the_hosts_loopback_alone(host, box, forwarder):
    host.space.run("ip", "link", "add", "eth0", "type", "bridge")
    host.space.run("ip", "link", "set", "eth0", "up")
    add_addresses(host.space, "eth0", "192.168.77.2/24")
    with box.listen(80):
        with pytest.raises(ConnectionRefusedError):
            host.connect(8080, "192.168.77.2")
        host.connect(8080).close()
    host.space.run("ip", "link", "delete", "eth0")


def test_datagrams_pass_and_each_sender_gets_his_answers(host, box, forwarder):
    senders = [host.datagrams() for _ in range(3)]
    with box.datagrams(80) as server:
        for round in range(3):
            for i, each in enumerate(senders):
                each.sendto(f"{round} {i}".encode() + b"." * 20000, (HOST, 8080))
                data, peer = server.recvfrom(1 << 16)
                server.sendto(b"to " + data, peer)
        for i, each in enumerate(senders):
            for round in range(3):
                data, peer = each.recvfrom(1 << 16)
                assert data.startswith(f"to {round} {i}.".encode()) and len(data) == 20006
                assert peer == (HOST, 8080)
            each.close()


def test_datagrams_to_nobody_are_lost_and_do_no_harm(host, box, forwarder):
    with host.datagrams() as sender:
        for _ in range(5):
            sender.sendto(b"anybody?", (HOST, 8080))
        with box.datagrams(80) as server:

            def asked():
                sender.sendto(b"anybody?", (HOST, 8080))
                server.settimeout(0.2)
                with contextlib.suppress(TimeoutError):
                    return server.recv(16) == b"anybody?"
                return False

            wait_for(asked, "a datagram arrives")
    assert forwarder.alive()


def test_many_senders_of_datagrams_take_no_more_than_there_is_room_for(host, box, forwarder):
    def send(n):
        for _ in range(n):
            with host.datagrams() as sender:
                sender.sendto(b"x", (HOST, 8080))
        return forwarder.descriptors()

    with box.datagrams(80):
        wait_for(lambda: send(50) == IDLE + 1024, "there is room for 1024")
        assert send(200) <= IDLE + 1024
        # The connection that was closed to make room may just have ended.
        wait_for(lambda: forwarder.descriptors() == IDLE + 1024, "there still is")
    assert forwarder.alive()


def test_thousands_of_connections_cost_descriptors_and_hardly_memory(host, box, forwarder):
    with box.listen(80) as listener:
        ends = [pair(host, box, listener) for _ in range(MANY)]
        wait_for(lambda: forwarder.descriptors() == IDLE + 2 * MANY, "all are there")
        for i, (client, _) in enumerate(ends):
            client.sendall(b"%d" % i)
        for i, (client, server) in enumerate(ends):
            text = b"%d" % i
            assert receive(server, len(text)) == text
            server.sendall(text)
            assert receive(client, len(text)) == text
        assert int(forwarder.status("VmRSS")[0]) < 8 << 10
        for each in ends:
            each[0].close()
            each[1].close()
    wait_for(lambda: forwarder.descriptors() == IDLE, "none is left")


def test_one_that_does_not_read_holds_up_nobody_else(host, box, forwarder):
    with box.listen(80) as listener:
        stuck = [pair(host, box, listener) for _ in range(20)]
        for _, server in stuck:
            server.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    server.send(b"." * (1 << 16))
        client, server = pair(host, box, listener)
        client.sendall(b"quick")
        assert receive(server, 5) == b"quick"
        assert int(forwarder.status("VmRSS")[0]) < 8 << 10
        for each in (*stuck, (client, server)):
            each[0].close()
            each[1].close()


def test_one_that_waits_costs_no_time(host, box, forwarder):
    with box.listen(80) as listener:
        ends = pair(host, box, listener)
        ends[0].shutdown(socket.SHUT_WR)
        assert receive_all(ends[1]) == b""

        def ticks():
            return sum(map(int, Path(f"/proc/{forwarder.pid}/stat").read_text().split()[13:15]))

        before = ticks()
        time.sleep(0.5)
        assert ticks() - before < 20  # a loop that spins takes 50
        for each in ends:
            each.close()


def test_it_has_no_rights_and_no_descriptor_that_it_does_not_need(host, box, forwarder):
    assert forwarder.status("Uid") == ["65534"] * 4
    assert forwarder.status("Gid") == ["65534"] * 4
    assert forwarder.status("Groups") == []
    for each in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
        assert int(forwarder.status(each)[0], 16) == 0
    assert forwarder.status("NoNewPrivs") == ["1"]
    assert forwarder.descriptors() == IDLE
    assert os.stat(f"/proc/{forwarder.pid}/fd").st_uid == 0  # not dumpable


def test_it_ends_with_the_sandbox_and_frees_its_ports(host, box, forwarder):
    box.space.holder.kill()
    box.space.holder.wait()
    forwarder.gone()
    host.listen(8080, HOST).close()


def test_it_outlives_the_daemon_and_the_next_takes_it_up(host, box):
    first = Daemon(host)
    f = first.start(f"start f {box.space.holder.pid} {BOX} tcp:8080:80")
    with box.listen(80) as listener:
        ends = pair(host, box, listener)
        first.process.kill()
        first.close()
        ends[0].sendall(b"still here")
        assert receive(ends[1], 10) == b"still here"
        for each in (*ends, *pair(host, box, listener)):
            each.close()
    second = Daemon(host)
    pid, start, boot = f.mark.split()
    later, rebooted = f"{pid} {int(start) + 1} {boot}", f"{pid} {start} {boot[:-4]}0000"
    for wrong in (later, rebooted, f"1 1 {boot}"):
        assert "is gone" in second.say(f"adopt x {wrong}")
    assert second.say(f"adopt f {f.mark}") == "ok"
    assert second.say("stop f") == "ok"
    f.gone()
    assert "is gone" in second.say(f"adopt f {f.mark}")
    assert second.close() == 0


@pytest.mark.parametrize("adopted", [False, True])
def test_its_end_by_itself_is_told_once_and_its_ports_are_free_then(host, box, adopted):
    daemon = Daemon(host)
    f = daemon.start(f"start f {box.space.holder.pid} {BOX} tcp:8080:80 udp:8080:80")
    if adopted:
        assert daemon.close() == 0
        daemon = Daemon(host)
        assert daemon.say(f"adopt f {f.mark}") == "ok"
    assert daemon.say("ended f") == "ok 0"
    os.kill(f.pid, signal.SIGKILL)
    assert daemon.say("await f") == "ok"
    again = daemon.start(f"start g {box.space.holder.pid} {BOX} tcp:8080:80 udp:8080:80")
    assert daemon.say("ended f") == "ok 1"
    assert daemon.say("stop f") == "ok"
    assert daemon.say("ended g") == "ok 0"
    assert daemon.say("stop g") == "ok"
    again.gone()
    assert daemon.close() == 0


def test_a_daemon_that_ends_in_order_leaves_it(host, box):
    first = Daemon(host)
    f = first.start(f"start f {box.space.holder.pid} {BOX} tcp:8080:80")
    assert first.close() == 0
    assert f.alive()
    box.space.holder.kill()
    f.gone()


def test_a_port_that_is_taken_and_a_protocol_that_is_not_forwarded_are_errors(host, box, daemon):
    pid = box.space.holder.pid
    with host.listen(8081, HOST):
        answer = daemon.say(f"start f {pid} {BOX} tcp:8080:80 tcp:8081:80")
        assert "port 8081/tcp of 127.0.0.1 is taken" in answer
        host.listen(8080, HOST).close()  # and nothing is left of the other
    with host.datagrams(8081, HOST):
        assert "port 8081/udp" in daemon.say(f"start f {pid} {BOX} udp:8081:80")
    assert "sctp is not forwarded" in daemon.say(f"start f {pid} {BOX} sctp:8080:80")


def test_one_that_cannot_start_is_an_error(host, box):
    pid = box.space.holder.pid
    for program, why in (("/nowhere/it", "start '/nowhere/it'"), ("/bin/true", "without a report")):
        daemon = Daemon(host, program)
        assert why in daemon.say(f"start f {pid} {BOX} tcp:8080:80")
        host.listen(8080, HOST).close()
        assert daemon.close() == 0
    daemon = Daemon(host)
    assert "nonsense" in daemon.say(f"start f {pid} nonsense tcp:8080:80")
    assert daemon.close() == 0


def test_names_are_asked_for_from_the_host(host, box, daemon):
    """The host's resolver is on a loopback address that no sandbox can reach."""
    with host.datagrams(53, "127.0.0.53") as server, host.listen(53, "127.0.0.53") as listener:
        f = daemon.start(f"dns f {box.space.holder.pid} 127.0.0.53")
        with box.datagrams() as client:
            client.sendto(b"who?", ("127.0.0.11", 53))
            data, peer = server.recvfrom(512)
            assert data == b"who?"
            server.sendto(b"she", peer)
            assert client.recvfrom(512) == (b"she", ("127.0.0.11", 53))
        with box.connect(53, "127.0.0.11") as client:
            taken, _ = listener.accept()
            taken.sendall(b"a long answer")
            taken.close()
            assert receive_all(client) == b"a long answer"
        with pytest.raises(ConnectionRefusedError):
            box.connect(53, "127.0.0.53")
        box.space.holder.kill()
        f.gone()
