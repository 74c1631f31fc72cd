"""RuntimeClient and lost connections: each shape, cut in each phase; no item is lost or doubled."""

import asyncio
import json

import client_targets as targets
import pytest
from agentix import Channel, RuntimeClient
from agentix.runtime.client import Reconnect, ResultUnavailable, RuntimeUnreachable
from fake_runtime import CLOSE, FakeRuntime, scenario


def spawn(awaitable):
    return asyncio.ensure_future(awaitable)


async def collect(stream):
    return [item async for item in stream]


async def noticed(client):
    """Waits until the client has detected the lost connection."""
    while client._sio is not None:  # noqa: ASYNC110  (the client has no event for it)
        await asyncio.sleep(0.001)


async def resumed(server, known=(), unknown=()):
    """Accepts the next connection, which resumes; the server sends the calls that it knows."""
    peer = await server.greet(resumed=True)
    assert peer.auth["session"] == "s1"
    named = (await peer.expect("resume"))["calls"]
    peer.send("resume:done", known=[list(k) for k in known], unknown=list(unknown))
    return peer, named


@scenario
async def test_a_unary_call_waits_for_its_result_over_a_lost_connection():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        call = spawn(client.remote(targets.sleep, 1))
        peer = await server.greet()
        fields = await peer.expect("unary")
        peer.drop()
        peer, named = await resumed(server, known=[(fields["call_id"], 0)])
        assert named == [[fields["call_id"], 0, 64, 49152]]
        peer.answer(fields, "slept")
        assert await call == "slept"


@scenario
async def test_a_request_that_never_arrived_is_sent_again():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        call = spawn(client.remote(targets.add, 4, b=5))
        peer = await server.greet()
        fields = await peer.expect("unary")
        peer.drop()
        peer, _ = await resumed(server, unknown=[fields["call_id"]])
        assert await peer.expect("unary") == fields
        peer.answer(fields, 9)
        assert await call == 9


@scenario
async def test_a_result_that_is_sent_twice_counts_once():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        stream = spawn(collect(client.remote(targets.count, 4)))
        peer = await server.greet()
        call_id = (await peer.expect("stream"))["call_id"]
        peer.send("stream:item", call_id=call_id, value=0, seq=1)
        peer.send("stream:item", call_id=call_id, value=1, seq=2)
        await peer.expect_ack(call_id, 2)
        peer.drop()
        peer, named = await resumed(server, known=[(call_id, 0)])
        assert named[0][:2] == [call_id, 2]
        for seq in range(1, 5):
            peer.send("stream:item", call_id=call_id, value=seq - 1, seq=seq)
        peer.send("stream:end", call_id=call_id, seq=5)
        assert await stream == [0, 1, 2, 3]


@scenario
async def test_a_connection_that_is_lost_behind_its_first_packet_is_one_try_of_many():
    """The client detects the end before it parses the packet that it has received."""
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        call = spawn(client.remote(targets.add, 1))
        peer = await server.greet()
        fields = await peer.expect("unary")
        peer.drop()
        for _ in range(3):
            peer = await server.accept()
            await peer.read_head()
            peer.switch()
            peer.text(peer.open_packet())
            peer.drop()
        peer, named = await resumed(server, known=[(fields["call_id"], 0)])
        assert named[0][0] == fields["call_id"]
        peer.answer(fields, 1)
        assert await call == 1


@scenario
async def test_credit_totals_survive_a_lost_connection():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        stream = aiter(client.remote(targets.forever))
        first = spawn(anext(stream))
        peer = await server.greet()
        call_id = (await peer.expect("stream"))["call_id"]
        for i in range(40):
            peer.send("stream:item", call_id=call_id, value=i, seq=i + 1)
        assert await first == 0
        await peer.expect_ack(call_id, 40)
        for i in range(1, 40):
            assert await anext(stream) == i
        peer.drop()
        waiting = spawn(anext(stream))
        peer, named = await resumed(server, known=[(call_id, 0)])
        assert named == [[call_id, 40, 32 + 256, 49152 + 32]]
        peer.send("stream:item", call_id=call_id, value=40, seq=41)
        assert await waiting == 40


@scenario
async def test_bidi_input_goes_on_where_the_server_left_off():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        channel = Channel()
        call = spawn(collect(client.remote(targets.scale, channel)))
        peer = await server.greet()
        call_id = (await peer.expect("bidi:start"))["call_id"]
        for i in range(5):
            await channel.send(i)
        for i in range(5):
            assert (await peer.expect("bidi:in"))["seq"] == i + 1
        peer.send("credit", call_id=call_id, n=70, bytes=1 << 20, seq=2)
        peer.send("bidi:out", call_id=call_id, value=0, seq=1)
        await peer.expect_ack(call_id, 1)
        peer.drop()
        await channel.send(5)
        await channel.close()
        peer, _ = await resumed(server, known=[(call_id, 3)])
        for i in (3, 4, 5):
            assert await peer.expect("bidi:in") == {"call_id": call_id, "item": i, "seq": i + 1}
        assert (await peer.expect("bidi:end_in"))["seq"] == 7
        peer.send("bidi:out", call_id=call_id, value=2, seq=2)
        peer.send("bidi:end", call_id=call_id, seq=3)
        assert await call == [0, 2]


@scenario
async def test_a_bidi_start_that_never_arrived_is_sent_again_with_its_input():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        channel = Channel()
        call = spawn(collect(client.remote(targets.scale, channel)))
        peer = await server.greet()
        fields = await peer.expect("bidi:start")
        await channel.send(1)
        await channel.close()
        await peer.expect("bidi:in")
        await peer.expect("bidi:end_in")
        peer.drop()
        peer, _ = await resumed(server, unknown=[fields["call_id"]])
        assert await peer.expect("bidi:start") == fields
        assert (await peer.expect("bidi:in"))["seq"] == 1
        assert (await peer.expect("bidi:end_in"))["seq"] == 2
        peer.send("bidi:end", call_id=fields["call_id"], seq=1)
        assert await call == []


@scenario
async def test_a_call_cancelled_while_away_is_not_named():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        first, second = (spawn(client.remote(targets.sleep, i)) for i in (1, 2))
        peer = await server.greet()
        a, b = await peer.expect("unary"), await peer.expect("unary")
        peer.drop()
        await asyncio.sleep(0)
        first.cancel()
        peer, named = await resumed(server, known=[(b["call_id"], 0)])
        assert [c[0] for c in named] == [b["call_id"]] != [a["call_id"]]
        peer.answer(b, "x")
        assert await second == "x"


@scenario
async def test_calls_made_while_away_go_out_after_the_resume():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        first = spawn(client.remote(targets.sleep, 1))
        peer = await server.greet()
        fields = await peer.expect("unary")
        peer.drop()
        await noticed(client)
        second = spawn(client.remote(targets.add, 1))
        peer, named = await resumed(server, known=[(fields["call_id"], 0)])
        assert len(named) == 1
        peer.answer(fields, "x")
        peer.answer(await peer.expect("unary"), 1)
        assert (await first, await second) == ("x", 1)


@scenario
async def test_a_server_that_lost_the_session_ends_open_calls_and_takes_new_ones():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        calls = [
            spawn(client.remote(targets.sleep, 1)),
            spawn(collect(client.remote(targets.forever))),
            spawn(collect(client.remote(targets.scale, Channel()))),
        ]
        peer = await server.greet()
        for event in ("unary", "stream", "bidi:start"):
            await peer.expect(event)
        peer.drop()
        await noticed(client)
        late = spawn(client.remote(targets.add, 1))
        peer = await server.greet(session="s2", resumed=False)
        for call in calls:
            with pytest.raises(ResultUnavailable):
                await call
        peer.answer(await peer.expect("unary"), 1)
        assert await late == 1


@scenario
async def test_an_answered_call_that_the_server_forgot_is_not_run_twice():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        call = spawn(collect(client.remote(targets.count, 9)))
        peer = await server.greet()
        call_id = (await peer.expect("stream"))["call_id"]
        peer.send("stream:item", call_id=call_id, value=0, seq=1)
        await peer.expect_ack(call_id, 1)
        peer.drop()
        await resumed(server, unknown=[call_id])
        with pytest.raises(ResultUnavailable, match="no longer knows"):
            await call


@scenario
async def test_the_client_tries_again_until_the_window_is_over():
    async with FakeRuntime() as server:
        client = RuntimeClient(server.url, reconnect=Reconnect(delay=0.01, window=5))
        call = spawn(client.remote(targets.sleep, 1))
        peer = await server.greet()
        await peer.expect("unary")
        peer.drop()
        tries = 0
        while not call.done():
            accepted = spawn(server.accept())
            await asyncio.wait([accepted, call], return_when=asyncio.FIRST_COMPLETED)
            if accepted.done():
                accepted.result().drop()
                tries += 1
            accepted.cancel()
        assert tries >= 3
        with pytest.raises(ResultUnavailable, match="connect to unix://"):
            await call
        await client.close()


@scenario
async def test_without_reconnect_open_calls_fail_at_once():
    async with FakeRuntime() as server, RuntimeClient(server.url, reconnect=False) as client:
        call = spawn(client.remote(targets.sleep, 1))
        peer = await server.greet()
        await peer.expect("unary")
        peer.drop()
        with pytest.raises(ResultUnavailable, match="connection lost"):
            await call
        again = spawn(client.remote(targets.add, 1))
        peer = await server.greet(session="s2")
        peer.answer(await peer.expect("unary"), 1)
        assert await again == 1


@scenario
async def test_an_idle_client_connects_again_at_its_next_call():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        call = spawn(client.remote(targets.add, 1))
        peer = await server.greet()
        peer.answer(await peer.expect("unary"), 1)
        await call
        peer.drop()
        await noticed(client)
        call = spawn(client.remote(targets.add, 2))
        peer, named = await resumed(server)
        assert named == []
        peer.answer(await peer.expect("unary"), 2)
        assert await call == 2


@pytest.mark.parametrize("goodbye", ["1", "41"])
@scenario
async def test_a_server_that_says_goodbye_ends_the_calls(goodbye):
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        call = spawn(client.remote(targets.sleep, 1))
        peer = await server.greet()
        await peer.expect("unary")
        peer.text(goodbye)
        with pytest.raises(RuntimeUnreachable, match="ended the connection"):
            await call
        await peer.gone()


@scenario
async def test_a_close_frame_is_a_lost_connection():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        call = spawn(client.remote(targets.sleep, 1))
        peer = await server.greet()
        fields = await peer.expect("unary")
        peer.frame(CLOSE, b"\x03\xf4")
        peer, _ = await resumed(server, known=[(fields["call_id"], 0)])
        peer.answer(fields, "x")
        assert await call == "x"


def _no_map(peer):
    peer.text('451-["unary:result",{"_placeholder":true,"num":0}]')
    peer.frame(2, b"\x01")


BROKEN = {
    "an attachment alone": lambda p: p.frame(2, b"\x80"),
    "no map": _no_map,
    "a masked frame": lambda p: p.writer.write(b"\x81\x81aaaab"),
    "a reserved bit": lambda p: p.writer.write(b"\xf1\x00"),
}


@pytest.mark.parametrize("name", BROKEN)
@scenario
async def test_bytes_that_make_no_sense_cost_the_connection_not_the_call(name):
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        call = spawn(client.remote(targets.sleep, 1))
        peer = await server.greet()
        fields = await peer.expect("unary")
        BROKEN[name](peer)
        await peer.gone()
        peer, _ = await resumed(server, known=[(fields["call_id"], 0)])
        peer.answer(fields, "x")
        assert await call == "x"


@scenario
async def test_a_silent_server_is_given_up_and_the_call_resumed():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        call = spawn(client.remote(targets.sleep, 1))
        peer = await server.greet(pingInterval=1000, pingTimeout=1000)
        fields = await peer.expect("unary")
        peer, _ = await resumed(server, known=[(fields["call_id"], 0)])
        peer.answer(fields, "x")
        assert await call == "x"


@scenario
async def test_a_server_of_0_1_5_has_no_session_and_open_calls_end():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        call = spawn(client.remote(targets.sleep, 1))
        peer = await (await server.accept()).greet_legacy()
        fields = await peer.expect("unary")
        assert "seq" not in fields and "timeout_ms" not in fields
        peer.drop()
        with pytest.raises(ResultUnavailable):
            await call


@scenario
async def test_bidi_input_for_a_server_of_0_1_5_has_its_keys_as_text():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        channel = Channel()
        await channel.send({1: "x"})
        await channel.close()
        call = spawn(collect(client.remote(targets.scale, channel)))
        peer = await (await server.accept()).greet_legacy()
        call_id = (await peer.expect("bidi:start"))["call_id"]
        assert (await peer.expect("bidi:in"))["item"] == {"1": "x"}
        await peer.expect("bidi:end_in")
        peer.send("bidi:end", call_id=call_id)
        assert await call == []


@scenario
async def test_a_server_that_wants_polling_first_is_asked_that_way():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        call = spawn(client.remote(targets.add, 1))
        peer = await server.accept()
        await peer.read_head()
        await peer.refuse(400)
        peer = await server.accept()
        await peer.read_head()
        assert "transport=polling" in peer.path
        body = peer.open_packet(upgrades=["websocket"]).encode()
        head = f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{len(body):x}\r\n"
        peer.writer.write(head.encode() + body + b"\r\n0\r\n\r\n")
        await peer.read_head()
        assert "transport=websocket" in peer.path and "sid=abc" in peer.path
        peer.switch()
        assert await peer.read_text() == "2probe"
        peer.text("3probe")
        assert await peer.read_text() == "5"
        peer.text("6")
        await peer.take_connect()
        peer.text('40{"sid":"x"}')
        peer.answer(await peer.expect("unary"), 1)
        assert await call == 1


REFUSALS = {
    "401": (lambda p: p.refuse(401, b'{"detail":"token"}'), "401.*token"),
    "no HTTP": (lambda p: _write(p, b"SSH-2.0-x\r\n\r\n"), "not an HTTP server"),
    "closed": (lambda p: _drop(p), "closed|reset"),
    "wrong key": (lambda p: _write(p, b"HTTP/1.1 101 x\r\nSec-WebSocket-Accept: x\r\n\r\n"), "key"),
}


async def _write(peer, data):
    peer.writer.write(data)


async def _drop(peer):
    peer.drop()


@pytest.mark.parametrize("name", REFUSALS)
@scenario
async def test_a_handshake_that_fails_says_why(name):
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        call = spawn(client.remote(targets.add, 1))
        peer = await server.accept()
        await peer.read_head()
        answer, message = REFUSALS[name]
        await answer(peer)
        with pytest.raises(RuntimeUnreachable, match=message):
            await call
        assert client._pending == {}


@scenario
async def test_a_connect_error_says_what_the_server_said():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        call = spawn(client.remote(targets.add, 1))
        peer = await server.accept()
        await peer.read_head()
        peer.switch()
        peer.text(peer.open_packet())
        await peer.take_connect()
        peer.text("44" + json.dumps({"message": "bad token"}))
        with pytest.raises(RuntimeUnreachable, match="bad token"):
            await call


@scenario
async def test_nobody_there_is_runtime_unreachable():
    client = RuntimeClient("unix:///nonexistent/s")
    with pytest.raises(RuntimeUnreachable, match="connect to unix:///nonexistent/s"):
        await client.remote(targets.add, 1)
    with pytest.raises(ConnectionError):
        await client.health()
    with pytest.raises(RuntimeUnreachable):
        await client._ensure_sio()
    await client.close()


@scenario
async def test_a_handshake_that_hangs_is_given_up():
    async with FakeRuntime() as server, RuntimeClient(server.url, timeout=0.2) as client:
        with pytest.raises(RuntimeUnreachable):
            await client.remote(targets.add, 1)
        with pytest.raises(RuntimeUnreachable):
            await client.health()
