"""agentix.runtime.shared: the modules that client, worker and third parties import."""

import asyncio
import doctest
import functools
import importlib

import pydantic
import pytest
from agentix import Channel
from agentix.runtime.shared import callables, framing, models, pump, rpc

MODULES = ["callables", "codec", "events", "frames", "framing", "idents", "models", "pump", "rpc"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    module = importlib.import_module(f"agentix.runtime.shared.{name}")
    assert doctest.testmod(module).failed == 0


# ---- shapes ----


async def coroutine(x):
    return x


async def stream(x):
    yield x


async def bidi(x, ch: Channel[int]):
    yield x


async def bidi_text(x, ch: "Channel"):
    yield x


class Instance:
    async def __call__(self, ch: Channel[int]):
        yield 1

    async def method(self):
        yield 1


def wrapping(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        return fn(*args, **kwargs)

    return inner


@pytest.mark.parametrize(
    ("fn", "shape"),
    [
        (len, "unary"),
        (int, "unary"),
        (Instance, "unary"),
        (coroutine, "unary"),
        (stream, "stream"),
        (bidi, "bidi"),
        (bidi_text, "bidi"),
        (Instance(), "bidi"),
        (Instance().method, "stream"),
        (functools.partial(stream, 1), "stream"),
        (functools.partial(bidi, 1), "bidi"),
        (functools.partial(functools.partial(bidi), 1), "bidi"),
        (wrapping(stream), "stream"),
        (wrapping(bidi), "bidi"),
        (pydantic.BaseModel, "unary"),
    ],
)
def test_shape_follows_from_the_signature(fn, shape):
    assert rpc.detect_declared_shape(fn) == shape


def test_shape_of_an_annotation_that_cannot_be_evaluated_raises():
    def fn(x: "nowhere"):  # noqa: F821
        pass

    with pytest.raises(NameError):
        rpc.detect_declared_shape(fn)


def test_channel_annotations():
    assert rpc.is_channel_annotation(Channel)
    assert rpc.is_channel_annotation(Channel[int])
    assert not rpc.is_channel_annotation(list[int])
    assert not rpc.is_channel_annotation(None)


# ---- channels ----


def run(coroutine_):
    return asyncio.run(asyncio.wait_for(coroutine_, 60))


def test_channel_gives_items_in_order_until_it_is_closed():
    async def main():
        ch = Channel()
        for i in range(5):
            await ch.send(i)
        await ch.close()
        await ch.close()
        with pytest.raises(RuntimeError, match="Channel is closed"):
            await ch.send(9)
        return [item async for item in ch]

    assert run(main()) == [0, 1, 2, 3, 4]


def test_channel_that_is_full_holds_its_sender_back():
    async def main():
        ch, sent = Channel(maxsize=2), []

        async def send_all():
            for i in range(10):
                await ch.send(i)
                sent.append(i)
            await ch.close()

        task = asyncio.create_task(send_all())
        await asyncio.sleep(0.01)
        assert sent == [0, 1]
        got = [item async for item in ch]
        await task
        return got

    assert run(main()) == list(range(10))


def test_channel_wakes_another_when_the_one_it_woke_is_cancelled():
    async def main():
        ch = Channel()
        first, second = (asyncio.create_task(anext(ch)) for _ in range(2))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await ch.send("x")
        first.cancel()
        assert await second == "x"
        with pytest.raises(asyncio.CancelledError):
            await first

    run(main())


def test_channel_that_is_closed_ends_everybody_who_waits():
    async def main():
        ch = Channel()
        tasks = [asyncio.create_task(anext(ch, "end")) for _ in range(3)]
        await asyncio.sleep(0)
        await ch.close()
        return await asyncio.gather(*tasks)

    assert run(main()) == ["end"] * 3


# ---- the rest ----


class Reader:
    """A StreamReader's readexactly over bytes."""

    def __init__(self, data):
        self.data = data

    async def readexactly(self, n):
        part, self.data = self.data[:n], self.data[n:]
        if len(part) < n:
            raise asyncio.IncompleteReadError(part, n)
        return part


def test_frames_are_read_as_they_were_packed():
    reader = Reader(framing.pack_frame({"type": "call", "id": 1}) + b"\0\0\0\0")
    assert run(framing.read_frame(reader)) == {"type": "call", "id": 1}
    assert run(framing.read_frame(reader)) == {}
    assert run(framing.read_frame(reader)) is None
    with pytest.raises(asyncio.IncompleteReadError):
        run(framing.read_frame(Reader(b"\5\0\0\0ab")))
    with pytest.raises(ValueError, match="limit"):
        run(framing.read_frame(Reader(b"\xff\xff\xff\xff")))
    with pytest.raises(ValueError, match="not a map"):
        run(framing.read_frame(Reader(b"\1\0\0\0\x90")))


def test_display_names_are_those_of_the_contract():
    assert callables.display_name_for(Instance.method) == f"{__name__}::Instance.method"
    assert callables.display_name_for(functools.partial(len)) == "functools::partial"
    assert callables.display_name_for(Instance()) == f"{__name__}::Instance"
    assert callables.display_name_for("x".upper) == "builtins::builtin_function_or_method"


def test_callables_travel_and_others_are_refused():
    assert callables.load_callable(callables.dump_callable(len)) is len
    with pytest.raises(TypeError, match=r"not callable \(got int\)"):
        callables.load_callable(b"\x80\x04K\x01.")


def test_request_model_checks_its_fields():
    good = {"callable_payload": b"x", "display_name": "a::b", "shape": "unary"}
    assert models.RemoteRequest(**good).args == []
    for bad in ({"display_name": ""}, {"shape": "other"}):
        with pytest.raises(pydantic.ValidationError):
            models.RemoteRequest(**(good | bad))


def test_pump_moves_items_up_to_its_sentinel():
    async def main():
        intake, out = asyncio.Queue(), asyncio.Queue()
        for item in (1, 2, None, 3):
            intake.put_nowait(item)
        await pump.drain(intake, out, None)
        task = asyncio.create_task(pump.drain(asyncio.Queue(), out, None))
        await asyncio.sleep(0)
        pump.cancel_if_running(task)
        await task
        pump.cancel_if_running(task)
        pump.cancel_if_running(None)
        return [out.get_nowait() for _ in range(out.qsize())]

    assert run(main()) == [1, 2, None]
