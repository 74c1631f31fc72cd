"""RuntimeClient against a scripted server: the handshake and the three shapes."""

import asyncio
import contextlib
import gc
import pickle
import warnings

import client_targets as targets
import pytest
from agentix import Bidi, Channel, RemoteCallError, RuntimeClient, Stream, Unary
from agentix.runtime.client import (
    CallCancelled,
    CallTimeout,
    MessageTooLarge,
    RuntimeUnreachable,
    WorkerExited,
)
from fake_runtime import CLOSE, PING, PONG, FakeRuntime, scenario


def spawn(awaitable):
    return asyncio.ensure_future(awaitable)


async def collect(stream):
    return [item async for item in stream]


async def connected(server, client):
    """The server's side of a connection that has answered a call, so the next is sent at once."""
    call = spawn(client.remote(targets.add, 1))
    peer = await server.greet()
    peer.answer(await peer.expect("unary"), 1)
    await call
    return peer


@scenario
async def test_the_handshake_goes_straight_to_a_websocket():
    async with FakeRuntime() as server, RuntimeClient(server.url, token="t0p") as client:
        call = spawn(client.remote(targets.add, 1, b=2))
        peer = await server.greet()
        assert "transport=websocket" in peer.path and "EIO=4" in peer.path
        assert peer.headers["authorization"] == "Bearer t0p"
        assert peer.auth == {"proto": 1, "max_message": 256 << 20}
        name, fields = await peer.next()
        assert name == "unary"
        assert fields["display_name"] == "client_targets::add" and fields["shape"] == "unary"
        assert fields["args"] == [1] and fields["kwargs"] == {"b": 2}
        assert b"client_targets" in fields["callable_payload"]
        peer.answer(fields, 3)
        assert await call == 3


@scenario
async def test_nothing_is_sent_before_the_first_await():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        unary, stream = client.remote(targets.add, 1), client.remote(targets.count, 1)
        await asyncio.sleep(0.05)
        assert client._sio is None
        assert isinstance(unary, Unary) and isinstance(stream, Stream)
        with pytest.warns(RuntimeWarning, match="client_targets::add was never awaited"):
            del unary
            gc.collect()


@scenario
async def test_calls_made_while_connecting_go_out_in_their_order():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        calls = [spawn(client.remote(targets.add, i)) for i in range(20)]
        await asyncio.sleep(0.01)
        peer = await server.greet()
        for i in range(20):
            fields = await peer.expect("unary")
            assert fields["args"] == [i]
            peer.answer(fields, i * 10)
        assert await asyncio.gather(*calls) == [i * 10 for i in range(20)]


@scenario
async def test_a_second_await_is_refused_and_create_task_too():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        call = client.remote(targets.add, 1)
        task = spawn(call)
        peer = await server.greet()
        peer.answer(await peer.expect("unary"), 1)
        assert await task == 1
        with pytest.raises(RuntimeError, match="already awaited"):
            await call
        again = client.remote(targets.add, 1)
        with pytest.raises(TypeError):
            asyncio.create_task(again)  # noqa: RUF006
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            del again


@scenario
async def test_a_cancelled_task_cancels_the_call_and_a_late_result_is_dropped():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        call = spawn(client.remote(targets.sleep, 9))
        peer = await server.greet()
        fields = await peer.expect("unary")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await peer.expect("cancel") == {"call_id": fields["call_id"]}
        peer.answer(fields, "late")
        other = spawn(client.remote(targets.add, 2))
        peer.answer(await peer.expect("unary"), 2)
        assert await other == 2
        assert client._pending == {}


@scenario
async def test_wait_for_ends_a_call_that_takes_too_long():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        peer = await connected(server, client)
        call = spawn(asyncio.wait_for(client.remote(targets.sleep, 9), 0.5))
        await peer.expect("unary")
        with pytest.raises(TimeoutError):
            await call
        await peer.expect("cancel")


@scenario
async def test_the_timeout_option_goes_to_the_server_and_holds_here_too():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        peer = await connected(server, client)
        call = spawn(client.options(timeout=1.5).remote(targets.sleep, seconds=9))
        fields = await peer.expect("unary")
        assert 1500 <= fields["timeout_ms"] <= 1501 and fields["kwargs"] == {"seconds": 9}
        with pytest.raises(CallTimeout, match=r"client_targets::sleep: .*1.5 s") as caught:
            await call
        assert isinstance(caught.value, RemoteCallError | TimeoutError)
        await peer.expect("cancel")
    with pytest.raises(ValueError, match="more than 0"):
        client.options(timeout=0)


@scenario
async def test_errors_of_the_server_are_exceptions_of_their_kind():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        peer = None

        async def fail_with(**error):
            nonlocal peer
            call = spawn(client.remote(targets.add, 1))
            peer = peer or await server.greet()
            fields = await peer.expect("unary")
            peer.send("unary:error", call_id=fields["call_id"], error=error, seq=1)
            with pytest.raises(BaseException) as caught:
                await call
            return caught.value

        e = await fail_with(type="ValueError", message="no", traceback="tb", cancelled=False)
        assert type(e) is RemoteCallError and str(e) == "client_targets::add: ValueError: no"
        assert e.display_name == "client_targets::add" and e.error.traceback == "tb"
        e = await fail_with(type="WorkerExited", message="signal 9", returncode=-9)
        assert type(e) is WorkerExited and e.returncode == -9
        e = await fail_with(type="CallTimeout", message="over")
        assert type(e) is CallTimeout
        e = await fail_with(type="MessageTooLarge", message="5 of 4")
        assert type(e) is MessageTooLarge
        e = await fail_with(type="Cancelled", message="remote call cancelled", cancelled=True)
        assert type(e) is CallCancelled and isinstance(e, asyncio.CancelledError)
        assert e.error.type == "Cancelled" and not isinstance(e, Exception)


@scenario
async def test_results_are_validated_by_the_return_annotation():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        call = spawn(client.remote(targets.add, 1))
        peer = await server.greet()
        peer.answer(await peer.expect("unary"), "12")
        assert await call == 12
        call = spawn(client.remote(targets.add, 1))
        peer.answer(await peer.expect("unary"), "twelve")
        with pytest.raises(ValueError, match="int"):
            await call
        value = {"t": (1,), "b": b"\0", "n": None, 3: [1.5]}
        call = spawn(client.remote(targets.echo, value))
        fields = await peer.expect("unary")
        assert fields["args"] == [{"t": [1], "b": b"\0", "n": None, 3: [1.5]}]
        peer.answer(fields, value)
        assert await call == {"t": [1], "b": b"\0", "n": None, 3: [1.5]}


@scenario
async def test_arguments_travel_by_their_annotation():
    import datetime

    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        day, point = datetime.date(2026, 1, 2), targets.Point(1, 2)
        call = spawn(client.remote(targets.shift, day, point, color=targets.Color.RED))
        peer = await server.greet()
        fields = await peer.expect("unary")
        assert fields["args"] == ["2026-01-02", {"x": 1, "y": 2}]
        assert fields["kwargs"] == {"color": "red"}
        peer.answer(fields, ["2026-01-03", {"x": 2, "y": 2}, "red"])
        assert await call == (datetime.date(2026, 1, 3), targets.Point(2, 2), targets.Color.RED)
        with pytest.raises(TypeError, match=r"agentix.codec: cannot encode .*date"):
            await client.remote(targets.echo, day)
        call = spawn(client.remote(targets.echo, [point]))
        assert (await peer.expect("unary"))["args"] == [[{"x": 1, "y": 2}]]
        call.cancel()


@scenario
async def test_what_cannot_be_called_says_so_at_the_documented_moment():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        with pytest.raises(NameError):
            client.remote(targets.unresolved, 1)
        with pytest.raises(TypeError):
            client.remote(targets.scale, "no channel")
        with pytest.raises(TypeError):
            client.remote(targets.scale, Channel(), bogus=1)
        call = client.remote(lambda: 1)
        with pytest.raises((AttributeError, pickle.PicklingError), match="lambda"):
            await call
        assert client._pending == {}


@scenario
async def test_a_request_past_the_limit_of_the_server_fails_at_once():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        call = spawn(client.remote(targets.echo, b"x" * 2000))
        await server.greet(limit=1000)
        with pytest.raises(MessageTooLarge, match="takes 1000"):
            await call
        assert client._pending == {}


@scenario
async def test_a_large_result_arrives_in_fragments_and_pieces():
    import msgpack

    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        big = bytes(range(256)) * 20000
        call = spawn(client.remote(targets.echo, big))
        peer = await server.greet()
        fields = await peer.expect("unary")
        assert fields["args"] == [big]
        data = msgpack.packb({"call_id": fields["call_id"], "value": big, "seq": 1})
        peer.text('451-["unary:result",{"_placeholder":true,"num":0}]')
        peer.text("2")
        peer.frame(2, data[:1000], fin=False)
        peer.frame(PING, b"hi")
        peer.frame(0, data[1000:])
        assert await call == big
        assert await peer.read_frame() == (1, b"3")
        assert await peer.read_frame() == (PONG, b"hi")


@scenario
async def test_two_calls_with_one_id_are_refused_and_a_context_names_it():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        with client.call_context(call_id="mine"):
            call = spawn(client.remote(targets.add, 1))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            with pytest.raises(RemoteCallError, match="DuplicateCall"):
                await client.remote(targets.add, 2)
        peer = await server.greet()
        fields = await peer.expect("unary")
        assert fields["call_id"] == "mine" and list(client._pending) == ["mine"]
        peer.answer(fields, 1)
        assert await call == 1


@scenario
async def test_a_stream_gives_its_items_then_ends():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        call = spawn(collect(client.remote(targets.count, 3)))
        peer = await server.greet()
        fields = await peer.expect("stream")
        for i in range(3):
            peer.send("stream:item", call_id=fields["call_id"], value=i, seq=i + 1)
        peer.send("stream:end", call_id=fields["call_id"], seq=4)
        assert await call == [0, 1, 2]
        name, acked = await peer.next()
        assert name == "ack" and acked == {"calls": [fields["call_id"], 4]}


@scenario
async def test_a_stream_that_fails_gives_the_items_before_the_error():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        got = []

        async def read():
            async for item in client.remote(targets.fail_after, 2):
                got.append(item)

        call = spawn(read())
        peer = await server.greet()
        fields = await peer.expect("stream")
        peer.send("stream:item", call_id=fields["call_id"], value=7, seq=1)
        error = {"type": "RuntimeError", "message": "after"}
        peer.send("stream:error", call_id=fields["call_id"], error=error, seq=2)
        with pytest.raises(RemoteCallError, match="after"):
            await call
        assert got == [7]


@scenario
async def test_leaving_a_stream_early_cancels_it():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:

        async def first():
            async for item in client.remote(targets.forever):
                return item

        call = spawn(first())
        peer = await server.greet()
        fields = await peer.expect("stream")
        peer.send("stream:item", call_id=fields["call_id"], value=5, seq=1)
        assert await call == 5
        assert await peer.expect("cancel") == {"call_id": fields["call_id"]}
        assert client._pending == {}


@scenario
async def test_aclose_ends_a_stream_and_no_item_follows():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        stream = client.remote(targets.forever)
        async with contextlib.aclosing(aiter(stream)) as items:
            first = spawn(anext(items))
            peer = await server.greet()
            fields = await peer.expect("stream")
            for i in range(3):
                peer.send("stream:item", call_id=fields["call_id"], value=i, seq=i + 1)
            assert await asyncio.wait_for(first, 60) == 0
        await peer.expect("cancel")
        assert await collect(stream) == []


@scenario
async def test_a_cancelled_reader_of_a_stream_cancels_it():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        call = spawn(collect(client.remote(targets.forever)))
        peer = await server.greet()
        await peer.expect("stream")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await peer.expect("cancel")


@scenario
async def test_credit_follows_what_the_user_takes():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        stream = aiter(client.remote(targets.forever))
        first = spawn(anext(stream))
        peer = await server.greet()
        fields = await peer.expect("stream")
        for i in range(64):
            peer.send("stream:item", call_id=fields["call_id"], value=i, seq=i + 1)
        assert await first == 0
        name, acked = await peer.next()
        assert name == "ack" and acked["calls"] == [fields["call_id"], 64]
        for i in range(1, 31):
            assert await anext(stream) == i
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(peer.next(), 0.15)
        assert await anext(stream) == 31
        name, credit = await peer.next()
        assert name == "credit"
        assert credit == {"call_id": fields["call_id"], "n": 32 + 256, "bytes": 49152 + 32}


@scenario
async def test_two_readers_of_one_stream_are_refused():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        stream = aiter(client.remote(targets.forever))
        first = spawn(anext(stream))
        peer = await server.greet()
        await peer.expect("stream")
        with pytest.raises(RuntimeError, match="another task"):
            await anext(stream)
        first.cancel()


@scenario
async def test_bidi_input_is_numbered_and_held_back_by_credit():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        channel = Channel()
        talk = client.remote(targets.scale, channel, factor=3)
        assert isinstance(talk, Bidi) and talk.inbox is channel
        call = spawn(collect(talk))
        for i in range(100):
            await channel.send(i)
        await channel.close()
        peer = await server.greet()
        fields = await peer.expect("bidi:start")
        assert fields["args"] == [] and fields["kwargs"] == {"factor": 3}
        call_id = fields["call_id"]
        for i in range(64):
            assert await peer.expect("bidi:in") == {"call_id": call_id, "item": i, "seq": i + 1}
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(peer.next(), 0.05)
        peer.send("credit", call_id=call_id, n=128, bytes=1 << 20, seq=64)
        for i in range(64, 100):
            assert (await peer.expect("bidi:in"))["item"] == i
        assert await peer.expect("bidi:end_in") == {"call_id": call_id, "seq": 101}
        peer.send("bidi:out", call_id=call_id, value=6, seq=1)
        peer.send("bidi:end", call_id=call_id, seq=2)
        assert await call == [6]


@scenario
async def test_a_bidi_item_that_cannot_be_sent_ends_the_call():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        channel = Channel()
        call = spawn(collect(client.remote(targets.scale, channel)))
        peer = await server.greet()
        await peer.expect("bidi:start")
        await channel.send(object())
        with pytest.raises(TypeError, match="cannot encode"):
            await call
        await peer.expect("cancel")


@scenario
async def test_match_tells_the_shapes_apart():
    async with FakeRuntime() as server, RuntimeClient(server.url) as client:
        found = []
        calls = [
            client.remote(targets.count, 1),
            client.remote(targets.scale, Channel()),
            client.remote(targets.add, 1),
        ]
        for call in calls:
            match call:
                case Unary(_):
                    found.append("unary")
                case Stream(_):
                    found.append("stream")
                case Bidi(inbox, _):
                    found.append(type(inbox))
        assert found == ["stream", Channel, "unary"]
        calls[2]._call.close()


@scenario
async def test_close_fails_the_calls_that_are_under_way_and_all_that_follow():
    async with FakeRuntime() as server:
        client = RuntimeClient(server.url)
        call = spawn(client.remote(targets.add, 1))
        stream = spawn(collect(client.remote(targets.forever)))
        peer = await server.greet()
        await peer.expect("unary")
        await peer.expect("stream")
        await client.close()
        for failed in (call, stream):
            with pytest.raises(RuntimeUnreachable, match="closed"):
                await failed
        assert await peer.read_text() == "41"
        assert (await peer.read_frame())[0] == CLOSE
        with pytest.raises(RuntimeUnreachable, match="closed"):
            await client.remote(targets.add, 1)
        await client.close()


@scenario
async def test_calls_run_under_uvloop_too():
    uvloop = pytest.importorskip("uvloop")

    def in_thread():
        async def main():
            async with FakeRuntime() as server, RuntimeClient(server.url) as client:
                call = spawn(client.remote(targets.add, 1))
                peer = await server.greet()
                peer.answer(await peer.expect("unary"), 3)
                assert await call == 3

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())

    await asyncio.to_thread(in_thread)
