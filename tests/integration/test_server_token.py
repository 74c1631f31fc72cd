"""Authentication with the bearer token, in a header or in the CONNECT packet."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from agxtest.wire import Client, Closed, Http, Polling, Session

TOKEN = "s3cret"
HEADER = [f"Authorization: Bearer {TOKEN}"]


@pytest.fixture(name="server")
def fixture_server(serve_fake):
    return serve_fake(env={"AGENTIX_TOKEN": TOKEN})


def test_health_needs_no_token_and_all_else_does(server):
    with Http(server) as h:
        assert h.request("/health")[0] == 200
        status, headers, body = h.request("/nowhere")
        assert (status, headers["www-authenticate"]) == (401, "Bearer")
        assert json.loads(body) == {"detail": "missing or wrong token"}
    with Http(server) as h:
        assert h.request("/nowhere", headers=HEADER)[0] == 404
    for wrong in (f"Bearer {TOKEN}x", "Bearer ", "Bearer", f"Basic {TOKEN}", TOKEN):
        with Http(server) as h:
            assert h.request("/nowhere", headers=[f"Authorization: {wrong}"])[0] == 401


def test_the_token_in_a_header(server):
    for scheme in ("Bearer", "bearer", "BEARER"):
        with Client(server, headers=[f"Authorization: {scheme} {TOKEN}"]) as c:
            assert c.call("fake::echo", 1) == ("result", [1])


def test_the_token_in_the_connect_packet(server):
    with Session(server, token=TOKEN) as s:
        assert s.call("fake::echo", 1) == ("result", [1])
    with Client(server, auth={"token": TOKEN}) as c:
        assert c.call("fake::echo", 1) == ("result", [1])


@pytest.mark.parametrize("auth", ["", "{}", '{"token":"x"}', '{"agentix":{"proto":1,"token":""}}'])
def test_a_connect_packet_without_the_token_is_refused_and_the_connection_ends(server, auth):
    with Client(server, connect=False) as c:
        c.send(f"40{auth}")
        kind, text = c.receive()
        assert (kind, text) == (1, b'44{"message":"missing or wrong token"}')
        with pytest.raises(Closed) as closed:
            c.receive()
        assert closed.value.code == 1008


def test_a_polling_client_is_told_why_it_is_refused(server):
    p = Polling(server, connect=False)
    p.http(p.url, "POST", b'40{"token":"x"}')
    assert p.packet() == b'44{"message":"missing or wrong token"}'
    assert p.http(p.url)[0] in (200, 400)


def test_the_log_needs_the_token_as_well(server):
    with Client(server, connect=False) as c:
        c.send("40/log,{}")
        assert c.receive()[1].startswith(b"44/log,")


@pytest.mark.parametrize("packet", ["42" + '["x"]', '451-["unary",{"_placeholder":true,"num":0}]'])
def test_nothing_may_be_said_before_connect(server, packet):
    with Client(server, connect=False) as c:
        c.send(packet)
        c.send(b"\x80", 2)
        with pytest.raises(Closed) as closed:
            c.receive()
        assert closed.value.code == 1008


def test_a_client_that_does_not_prove_itself_in_time_is_closed(server):
    begin = time.monotonic()
    with Client(server, connect=False) as c:
        with pytest.raises(Closed) as closed:
            c.receive()
        assert closed.value.code == 1008 and 4 < time.monotonic() - begin < 60


def test_who_is_not_proven_cannot_make_the_server_take_large_messages(server):
    with Client(server, connect=False) as c:
        try:
            c.send("40" + json.dumps({"token": "x" * (4 << 20)}))
            with pytest.raises(Closed):
                c.receive()
        except ConnectionError:
            pass
    p = Polling(server, connect=False)
    with Http(server) as h:
        h.socket.sendall(
            f"POST {p.url} HTTP/1.1\r\nHost: h\r\nContent-Length: {64 << 20}\r\n\r\n".encode()
        )
        assert h.answer()[0] in (400, 401, 413)


def silent(server, source):
    return Client(server, connect=False, source=source)


@pytest.mark.parametrize("host", ["127.0.0.1", "::"])
def test_one_address_has_only_a_part_of_the_places_without_proof(serve_fake, host):
    """A quarter. On `::` the server sees IPv4 addresses as parts of IPv6 ones."""
    server = serve_fake("--host", host, env={"AGENTIX_TOKEN": TOKEN})
    server.worker_pid()
    with ThreadPoolExecutor(16) as pool:
        waiting = list(pool.map(lambda _: silent(server, "127.0.0.1"), range(16)))
    assert {c.status for c in waiting} == {101}
    with silent(server, "127.0.0.1") as c:
        assert c.status == 503 and b"CONNECT" in c.body
    with Client(server, auth={"token": TOKEN}, source="127.0.0.2") as c:
        assert c.call("fake::echo", 1) == ("result", [1])
    with Client(server, headers=HEADER) as c:
        assert c.call("fake::echo", 1) == ("result", [1])
    waiting[0].connect({"token": TOKEN})
    with Client(server, auth={"token": TOKEN}) as c:  # a place is free
        assert c.call("fake::echo", 1) == ("result", [1])
    for c in waiting:
        c.close()


def test_clients_without_proof_are_limited_and_proven_ones_go_on(server):
    server.worker_pid()  # wait, so that its start does not use up the time of the others
    proven = Polling(server, auth=json.dumps({"token": TOKEN}))
    with ThreadPoolExecutor(64) as pool:  # at once: they have five seconds to prove themselves
        waiting = list(pool.map(lambda i: silent(server, f"127.0.0.{i % 4 + 1}"), range(64)))
    assert {c.status for c in waiting} == {101}
    for source in ("127.0.0.1", "127.0.0.5"):
        with Http(server, source=source) as h:
            assert h.request("/socket.io/?EIO=4&transport=polling")[0] == 401
    with Client(server, headers=HEADER) as c:
        assert c.call("fake::echo", 1) == ("result", [1])
    proven.start("fake::echo", 2)
    assert proven.event()[1]["value"] == [2]
    waiting[0].connect({"token": TOKEN})
    assert waiting[0].call("fake::echo", 1) == ("result", [1])
    waiting.pop().close()
    for c in waiting:
        c.close()


def test_the_worker_does_not_see_the_token(server):
    with Client(server, headers=HEADER) as c:
        surroundings = c.call("fake::surroundings")[1]
        assert TOKEN not in json.dumps(surroundings["env"])
        assert TOKEN not in server.log()


def test_the_token_comes_from_a_file(serve_fake, tmp_path):
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    with Client(serve_fake("--token-file", path), headers=HEADER) as c:
        assert c.call("fake::echo", 1) == ("result", [1])


def test_a_server_without_a_token_says_what_that_means(serve_fake):
    assert "server.no_token" in serve_fake().log()
