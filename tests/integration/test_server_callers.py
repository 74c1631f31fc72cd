"""Which callers agentix-server accepts without a token: by Origin, Host and the peer's user.

tests/security/test_server.py shows the attacks that these checks prevent.
"""

import contextlib
import json
import os
import socket
import subprocess
import threading

import pytest
from agxtest.server import held_up
from agxtest.wire import UPGRADE, Client, Http, Polling

EIO = "/socket.io/?EIO=4&transport=polling"
WEBSOCKET = "/socket.io/?EIO=4&transport=websocket"
NOBODY = 65534


def refusal(answer):
    """The reason why a request was refused."""
    status, headers, body = answer
    assert status == 403, answer
    assert not [name for name in headers if name.startswith("access-control-")]
    return json.loads(body)["detail"]


def ask(server, host="localhost", origin=None, target="/health", unix=False):
    headers = [] if origin is None else [f"Origin: {origin}"]
    with Http(server, unix) as h:
        return h.request(target, headers=headers, host=host)


@contextlib.contextmanager
def user(uid):
    """Sockets that are made during the block belong to this user."""
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


# -- Origin


def test_pages_of_the_servers_own_address_may_call(serve_fake):
    """Some clients also send an Origin that they make from the address they connect to."""
    server = serve_fake()
    for host in ("127.0.0.1", "localhost", "[::1]"):
        at = f"{host}:{server.port}"
        assert ask(server, at, f"http://{at}")[0] == 200
        headers = [f"Origin: http://{at}"]
        with Client(server, headers=headers, host=at) as c:
            assert c.call("fake::echo", 1) == ("result", [1])
    assert ask(server, "localhost", "http://LOCALHOST:80")[0] == 200
    assert ask(server, "localhost", "https://localhost")[0] == 200


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://127.0.0.1:1",
        "http://localhost.evil.example",
        "http://[::1]",
        "https://localhost:80",
        "app://localhost",
        "null",
        "",
        "localhost",
        "http://localhost http://localhost",
        "http://localhost/",
        "*",
    ],
)
@pytest.mark.parametrize("options", [[], ["--insecure"]])
def test_pages_of_another_origin_may_do_nothing(serve_fake, origin, options):
    server = serve_fake(*options)
    p = Polling(server)
    own = [f"Origin: {origin}"]
    requests = [
        ("/health", "GET", None, own),
        ("/nowhere", "GET", None, own),
        (EIO, "GET", None, own),
        (EIO, "OPTIONS", None, own),
        (p.url, "GET", None, own),
        (p.url, "POST", b"40", [*own, "Content-Type: text/plain"]),
        (WEBSOCKET, "GET", None, [*UPGRADE, *own]),
    ]
    for target, method, body, headers in requests:
        with Http(server) as h:
            assert "--origin" in refusal(h.request(target, method, body, headers))
    assert ask(server)[0] == 200, "others go on"


def test_two_origins_are_none(serve_fake):
    server = serve_fake("--origin", "http://a", "--origin", "http://b")
    with Http(server) as h:
        assert "--origin" in refusal(
            h.request("/health", headers=["Origin: http://a", "Origin: http://b"])
        )


def test_a_page_may_not_call_by_the_unix_socket_either(serve_fake):
    server = serve_fake()
    assert ask(server, "whatever", unix=True)[0] == 200
    assert "--origin" in refusal(ask(server, "localhost", "http://evil.example", unix=True))


@pytest.mark.parametrize("named", ["https://dev.example", "http://localhost:3000", "null"])
@pytest.mark.parametrize("by", ["option", "variable"])
def test_pages_of_an_origin_that_is_named_may_call_and_read_the_answers(serve_fake, named, by):
    if by == "option":
        server = serve_fake("--origin", "http://other", "--origin", named)
    else:
        server = serve_fake(env={"AGENTIX_ORIGIN": f"http://other {named}"})
    origin = f"Origin: {named}"
    with Client(server, headers=[origin]) as c:
        assert c.call("fake::echo", 1) == ("result", [1])
    for target in ("/health", "/nowhere", EIO):
        with Http(server) as h:
            _, headers, _ = h.request(target, headers=[origin])
            assert headers["access-control-allow-origin"] == named
            assert headers["vary"] == "Origin"
            assert "access-control-allow-methods" not in headers
            _, headers, _ = h.request(target)
            assert not [name for name in headers if name.startswith("access-control-")]
    with Http(server) as h:
        asked = [origin, "Access-Control-Request-Headers: x-a, x-b"]
        status, headers, body = h.request(EIO, "OPTIONS", headers=asked)
        assert (status, body) == (200, b"OK")
        assert headers["access-control-allow-origin"] == named
        assert headers["access-control-allow-methods"] == "OPTIONS, GET, POST"
        assert headers["access-control-allow-headers"] == "x-a, x-b"
        assert headers["access-control-allow-credentials"] == "true"
        assert headers["vary"] == "Origin"
    assert "--origin" in refusal(ask(server, origin=f"{named}.evil.example"))


def test_a_large_request_of_a_foreign_page_is_refused_before_its_body(serve_fake):
    server = serve_fake()
    with Http(server) as h:
        h.socket.sendall(
            b"POST /socket.io/?EIO=4 HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n"
            b"Content-Length: 100000000\r\n\r\n"
        )
        assert "--origin" in refusal(h.answer())
        assert h.file.read() == b"", "the connection ends"


# -- Host


@pytest.mark.parametrize("form", ["{}", "{}:8000", "{}:"])
@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "LocalHost", "[::1]", "[0:0::1]"])
def test_a_host_of_the_loopback_may_be_asked(serve_fake, host, form):
    assert ask(serve_fake(), form.format(host))[0] == 200


FOREIGN = [
    "evil.example",
    "evil.example:8000",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "0.0.0.0",
    "10.0.0.1",
    "[::]",
    "2130706433",
    "",
    ":80",
    "localhost,evil.example",
    "localhost:port",
    "[::1",
    "user@localhost",
]


@pytest.mark.parametrize("host", FOREIGN)
def test_another_host_is_refused(serve_fake, host):
    """A page whose own name now resolves to this machine (DNS rebinding) sends that name as
    Host."""
    server = serve_fake()
    assert "--host-name" in refusal(ask(server, host))
    assert "--host-name" in refusal(ask(server, host, target=EIO))
    assert ask(server, host, unix=True)[0] == 200


def test_a_request_without_a_host_is_refused(serve_fake):
    server = serve_fake()
    for text, status in (
        (b"GET /health HTTP/1.0\r\n\r\n", 403),
        (b"GET /health HTTP/1.1\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
    ):
        with Http(server) as h:
            h.socket.sendall(text)
            answer = h.answer()
            assert answer[0] == status and "Host" in json.loads(answer[2])["detail"]


@pytest.mark.parametrize("by", ["option", "variable"])
def test_a_host_name_that_is_given_may_be_asked(serve_fake, by):
    if by == "option":
        server = serve_fake("--host-name", "dev.example", "--host-name", "[2001:db8::1]")
    else:
        server = serve_fake(env={"AGENTIX_HOST_NAME": " dev.example  [2001:db8::1] "})
    for host in ("dev.example", "DEV.example:99", "[2001:DB8:0::1]:8000", "localhost"):
        assert ask(server, host)[0] == 200
    assert ask(server, "dev.example:99", "http://dev.example:99")[0] == 200
    assert "--host-name" in refusal(ask(server, "xdev.example"))


def test_insecure_takes_any_host(serve_fake):
    server = serve_fake("--insecure")
    for host in FOREIGN:
        assert ask(server, host)[0] == 200


def test_a_bound_address_beyond_the_loopback_has_no_rule_for_hosts(serve_fake):
    """Such an address needs a token or --insecure."""
    server = serve_fake("--host", "0.0.0.0", env={"AGENTIX_INSECURE": "1"})
    assert ask(server, "anything.example")[0] == 200
    assert "--origin" in refusal(ask(server, "anything.example", "http://evil.example"))


# -- users


def test_another_user_is_refused(serve_fake):
    server = serve_fake()
    with user(NOBODY):
        with Http(server) as h:
            assert "another user" in refusal(h.request("/health"))
        with Http(server) as h:
            assert "another user" in refusal(h.request(WEBSOCKET, headers=UPGRADE))
    assert ask(server)[0] == 200


def test_with_insecure_any_user_may_call(serve_fake):
    server = serve_fake("--insecure")
    with user(NOBODY), Client(server) as c:
        assert c.call("fake::echo", 1) == ("result", [1])


def test_who_has_gone_already_is_not_taken_for_root(serve_fake):
    """The kernel has forgotten the owner of a closed socket. No client reads the answer, but a call
    would run. The server is stopped until the client has sent the call and closed its socket.
    """
    server = serve_fake()
    server.worker_pid()
    with held_up(server.pid), user(NOBODY):
        c = Client.__new__(Client)
        Http.__init__(c, server)
        head = "\r\n".join([f"GET {WEBSOCKET} HTTP/1.1", "Host: localhost", *UPGRADE])
        call = {"call_id": "x", "target": "fake::echo", "args": [], "kwargs": {}}
        c.socket.sendall(head.encode() + b"\r\n\r\n" + c.frame("40") + c.encode("unary", call))
        c.close()
    with Client(server) as other:  # accepted after it
        assert other.call("fake::frames", "call") == ("result", 1), "its own call alone"
    assert "client.unknown" in server.log()


def test_a_peer_whose_socket_is_not_here_is_refused(serve_fake):
    """The peer's socket is not on this machine, although its address is. A socket that vanished
    without a packet (TCP_REPAIR) looks the same.
    """
    server = serve_fake()
    with held_up(server.pid):
        s = socket.create_connection(("127.0.0.1", server.port))
        s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try:
            s.setsockopt(socket.IPPROTO_TCP, 19, 1)  # TCP_REPAIR
        except PermissionError:
            pytest.skip("only root may repair connections")
        s.close()
    assert ask(server)[0] == 200
    assert "client.unknown" in server.log()


def test_users_of_tcp_over_ipv6_are_told_apart(serve_fake):
    server = serve_fake("--host", "::1")

    def ask6():
        with socket.create_connection(("::1", server.port)) as s, s.makefile("rb") as f:
            s.sendall(b"GET /health HTTP/1.1\r\nHost: [::1]\r\n\r\n")
            return int(f.readline().split()[1])

    assert ask6() == 200
    with user(NOBODY):
        assert ask6() == 403


def test_many_users_at_a_time_are_not_mixed_up(serve_fake):
    """The server looks up the user of each connection separately."""
    server = serve_fake()
    found = {0: set(), NOBODY: set()}
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")

    def run(uid):
        program = (
            "import socket,sys\n"
            "for _ in range(100):\n"
            f"    with socket.create_connection(('127.0.0.1',{server.port})) as s:\n"
            "        s.sendall(b'GET /health HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n')\n"
            "        print(s.recv(4096).split()[1].decode())\n"
        )
        done = subprocess.run(
            ["/usr/bin/env", "python3", "-c", program],
            user=uid,
            capture_output=True,
            text=True,
            check=True,
        )
        found[uid] |= set(done.stdout.split())

    threads = [threading.Thread(target=run, args=(uid,)) for uid in found for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {0: {"200"}, NOBODY: {"403"}}


# -- with a token


def test_a_token_is_proof_enough(serve_fake):
    server = serve_fake(env={"AGENTIX_TOKEN": "t"})
    headers = ["Authorization: Bearer t", "Origin: http://evil.example"]
    with user(NOBODY), Client(server, headers=headers, host="evil.example") as c:
        assert c.call("fake::echo", 1) == ("result", [1])
    with Http(server) as h:
        _, answered, _ = h.request("/nowhere", headers=headers)
        assert not [name for name in answered if name.startswith("access-control-")]


def test_with_a_token_a_page_that_is_named_may_read_the_answers(serve_fake):
    server = serve_fake("--origin", "http://dev.example", env={"AGENTIX_TOKEN": "t"})
    with Http(server) as h:
        headers = ["Origin: http://dev.example", "Access-Control-Request-Headers: authorization"]
        status, answered, _ = h.request(EIO, "OPTIONS", headers=headers)
        assert status == 200
        assert answered["access-control-allow-origin"] == "http://dev.example"
        assert answered["access-control-allow-headers"] == "authorization"
