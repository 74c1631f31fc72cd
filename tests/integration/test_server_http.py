"""agentix-server as an HTTP server: health, errors as JSON, limits, descriptors."""

import json
import socket
import stat

import pytest
from agxtest.server import wait_for
from agxtest.wire import UPGRADE, Client, Closed, Http, Polling


def detail(answer, status):
    """The text of a JSON error body."""
    assert answer[0] == status, answer
    assert answer[1]["content-type"] == "application/json"
    return json.loads(answer[2])["detail"]


def test_health_says_what_an_old_client_needs_and_more(serve_fake):
    server = serve_fake()
    server.worker_pid()
    for unix in (False, True):
        with Http(server, unix) as h:
            status, headers, body = h.request("/health")
            assert status == 200 and headers["content-type"] == "application/json"
            answer = json.loads(body)
            assert answer["status"] == "ok" and isinstance(answer["version"], str)
            assert answer["worker"] == "ready" and answer["calls"] == 0


def test_health_takes_get_only_and_sends_a_slash_home(serve_fake):
    with Http(serve_fake()) as h:
        answer = h.request("/health", "POST", b"x")
        assert detail(answer, 405) == "Method Not Allowed" and answer[1]["allow"] == "GET"
        status, _, body = h.request("/health", "HEAD")
        assert (status, body) == (405, b"")
        status, headers, _ = h.request("/health/")
        assert (status, headers["location"]) == (307, "/health")


def test_unknown_paths_are_404(serve_fake):
    with Http(serve_fake()) as h:
        for path in ("/", "/healthy", "/docs", "/socket.iox"):
            assert detail(h.request(path), 404) == "Not Found"
        assert detail(h.request("/_remote", "POST", b"x"), 404) == "Not Found"


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"nonsense\r\n\r\n",
        b'GET /"quoted\\ HTTP/1.1\r\nHost: localhost\r\n\r\n',
        b'GE"T / HTTP/1.1\r\nHost: localhost\r\n\r\n',
        b'GET / HTTP/1.1\r\nHost: localhost\r\nBad"Header\\: x\r\n\r\n',
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_a_bad_request_is_400_with_a_reason_in_json(serve_fake, request_bytes):
    with Http(serve_fake()) as h:
        h.socket.sendall(request_bytes)
        answer = h.answer()
        if answer[0] != 404:  # a path with a quote in it is odd, not wrong
            assert len(detail(answer, 400)) > 5


def test_a_bad_request_behind_a_head_request_has_its_body(serve_fake):
    with Http(serve_fake()) as h:
        assert h.request("/health", "HEAD")[0] == 405
        h.socket.sendall(b"nonsense\r\n\r\n")
        assert detail(h.answer(), 400)


def test_a_head_past_64_kib_is_431(serve_fake):
    with Http(serve_fake()) as h:
        head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: "
        h.socket.sendall(head + b"x" * 70000 + b"\r\n\r\n")
        assert detail(h.answer(), 431)


def test_a_body_past_the_largest_message_is_413(serve_fake):
    server = serve_fake("--max-message", "64k")
    with Http(server) as h:
        assert detail(h.request("/nowhere", "POST", b"x" * 70000), 413)
    p = Polling(server)
    status, _, body = p.http(p.url, "POST", b"4" * 70000)
    assert (status, body) == (400, b'"Bad Request"')
    assert p.http(p.url)[0] == 400, "the session is dropped, as the peer's server does"


def test_engine_io_errors_have_the_bodies_of_the_peer(serve_fake):
    with Http(serve_fake()) as h:
        for target, expected in (
            (
                "/socket.io/?transport=polling",
                "The client is using an unsupported version of the Socket.IO or Engine.IO "
                "protocols",
            ),
            ("/socket.io/?EIO=4&transport=pigeon", "Invalid transport"),
            ("/socket.io/?EIO=4&transport=polling&sid=nope", "Invalid session nope"),
            ("/socket.io/?EIO=4&transport=websocket", "Invalid websocket upgrade"),
        ):
            status, headers, body = h.request(target)
            assert (status, json.loads(body)) == (400, expected)
            assert headers["content-type"].startswith("text/plain")
        assert h.request("/socket.io/?EIO=4", "PUT", b"")[0] == 405
        status, headers, body = h.request("/socket.io/?EIO=4", "OPTIONS")
        assert (status, body) == (200, b"OK")
        assert not [name for name in headers if name.startswith("access-control-")]


def test_the_handshake_promises_what_it_should(serve_fake):
    server = serve_fake()
    p = Polling(server)
    assert p.open["upgrades"] == ["websocket"]
    assert (p.open["pingInterval"], p.open["pingTimeout"]) == (25000, 300000)
    assert p.open["maxPayload"] == 256 << 20
    assert Client(server).open["upgrades"] == []


def test_the_unix_socket_is_for_its_owner_only(serve_fake):
    server = serve_fake()
    assert stat.S_IMODE(server.socket_path.stat().st_mode) == 0o600
    with Client(server, unix=True) as c:
        assert c.call("fake::echo", 1) == ("result", [1])


def test_another_namespace_is_refused(serve_fake):
    with Client(serve_fake()) as c:
        c.send("40/foo,")
        assert c.receive() == (1, b'44/foo,"Unable to connect"')
        assert c.call("fake::echo") == ("result", [])


def test_a_malformed_websocket_message_costs_only_its_own_connection(serve_fake):
    server = serve_fake()
    with Client(server) as good, Client(server) as bad:
        bad.send("9what")
        with pytest.raises(Closed) as closed:
            bad.receive()
        assert closed.value.code == 1002
        assert good.call("fake::echo", 1) == ("result", [1])


def test_connections_that_come_and_go_leave_no_descriptor(serve_fake):
    server = serve_fake()
    server.worker_pid()
    with Client(server) as c:
        c.call("fake::echo")
    server.settle_descriptors(before := server.descriptors())
    before = server.descriptors()
    for i in range(60):
        if i % 3 == 0:
            client = Client(server)
            client.start("fake::hang")
            client.cut()
        elif i % 3 == 1:
            with Http(server) as h:
                h.socket.sendall(b"GET /socket.io/?EIO=4 HTT")
        else:
            Polling(server)
    server.settle_descriptors(before)
    wait_for(lambda: server.health()["calls"] == 0, "calls of clients that are gone are over")


def test_a_half_closed_client_still_gets_its_answer_or_a_clean_end(serve_fake):
    server = serve_fake()
    with Http(server) as h:
        h.socket.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        h.socket.shutdown(socket.SHUT_WR)
        assert h.answer()[0] == 200


def test_upgrading_with_polling_first_keeps_the_session(serve_fake):
    server = serve_fake()
    p = Polling(server)
    with Http(server) as h:
        url = p.url.replace("polling", "websocket")
        assert h.request(url, headers=UPGRADE)[0] == 101
        c = Client.__new__(Client)
        c.socket, c.file, c.number = h.socket, h.file, 0
        c.send("2probe")
        assert c.receive() == (1, b"3probe")
        c.send("5")
        assert c.call("fake::echo", "up") == ("result", ["up"])


def test_a_polling_request_may_have_more_than_16_packets(serve_fake):
    """The limit of 16 is the Python client's, for what it receives."""
    p = Polling(serve_fake())
    packets = []
    for i in range(40):
        payload = {"call_id": f"n{i}", "target": "fake::echo", "args": [i], "kwargs": {}}
        packets += p.packets("unary", payload)
    p.post(*packets)
    answers = dict((e["call_id"], e["value"]) for _, e in (p.event() for _ in range(40)))
    assert answers == {f"n{i}": [i] for i in range(40)}


def test_a_polling_stream_of_many_items_comes_in_bodies_of_16_packets(serve_fake):
    p = Polling(serve_fake())
    p.start("fake::count", 300, kind="stream")
    events = [p.event() for _ in range(301)]
    assert [e["value"] for _, e in events[:300]] == list(range(300))
    assert events[300][0] == "stream:end"
