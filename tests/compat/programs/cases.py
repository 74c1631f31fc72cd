"""usage: PYTHON cases.py URL CASE...: shows how the client of agentixx 0.1.5 sees a server.

Runs under the peer's own interpreter, with its unchanged client. Prints one JSON object for each
case: the result of a function below, or {"hang": true}.
"""

import asyncio
import contextlib
import functools
import json
import sys

import compat_targets as t
import numpy
import socketio
from agentix import Channel, RemoteCallError, RuntimeClient

LIMIT_S = 240  # tells a hang: what waits in front of an answer costs this client seconds
cases = {}


def case(function):
    cases[function.__name__] = function
    return function


async def error_of(call):
    """What a call raises, as a list of its type and what matters of its text."""
    try:
        return ["no error", await call]
    except RemoteCallError as error:
        return [error.error.type, error.error.message]
    except asyncio.CancelledError as error:
        return ["CancelledError", str(error)]
    except Exception as error:
        return [type(error).__name__, str(error)]


async def seen(c, event):
    """Waits until the worker has told of it."""
    while event not in await c.remote(t.take_events):  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def took(call):
    begin = asyncio.get_running_loop().time()
    await call
    return asyncio.get_running_loop().time() - begin


@case
async def health(c):
    answer = await c.health()
    return [answer.status, isinstance(answer.version, str)]


@case
async def unary(c):
    return [
        await c.remote(t.add, 1, 2),
        await c.remote(t.add, 1),
        await c.remote(t.add_sync, a=1, b=5),
        await c.remote(t.untyped, 1, "x", None, k=[1.5, True]),
        await c.remote(t.nothing),
    ]


@case
async def unary_types(c):
    point = await c.remote(t.mirror, t.Point(x=1, y=2), scale=3)
    pair = await c.remote(t.flip, t.Pair(1, "2"))
    return [
        [type(point).__name__, point.x, point.y],
        [type(pair).__name__, pair.left, pair.right],
        str(await c.remote(t.coordinates, (1, 2))),
    ]


@case
async def many_at_once(c):
    return await asyncio.gather(*(c.remote(t.add, i, i) for i in range(200)))


@case
async def stream(c):
    return [
        [i async for i in c.remote(t.count, 1000)],
        [[type(p).__name__, p.x] async for p in c.remote(t.count_points, 2)],
    ]


@case
async def stream_error(c):
    got = []
    try:
        async for i in c.remote(t.count_and_fail, 3):
            got.append(i)
    except RemoteCallError as error:
        return [got, error.error.type, error.error.message, "ValueError" in error.error.traceback]


@case
async def stream_left_early(c):
    await c.remote(t.take_events)
    items = c.remote(t.count, 100_000, 0.001).__aiter__()
    got = [await anext(items) for _ in range(3)]
    await items.aclose()
    await seen(c, "count ended")
    return [got, "ended"]


@case
async def bidi(c):
    inbox = Channel()
    call = c.remote(t.running_sum, inbox, start=100)

    async def feed():
        for i in range(200):
            await inbox.send(i)
        await inbox.close()

    feeder = asyncio.create_task(feed())
    got = [total async for total in call]
    await feeder
    return [len(got), got[0], got[-1]]


@case
async def bidi_in_step(c):
    inbox = Channel()
    outputs = c.remote(t.running_sum, inbox).__aiter__()
    got = []
    for i in range(20):
        await inbox.send(i)
        got.append(await anext(outputs))
    await inbox.close()
    return [got, [x async for x in outputs]]


@case
async def bidi_bad_item(c):
    """Ledger 18: items before it are answered, one terminal event, and the generator ends."""
    await c.remote(t.take_events)
    inbox = Channel()
    call = c.remote(t.strict_inbox, inbox)
    await inbox.send(t.Point(x=1))
    await inbox.send("nonsense")
    await inbox.send(t.Point(x=3))
    got = []
    try:
        async for x in call:
            got.append(x)
        end = "end"
    except RemoteCallError as error:
        end = error.error.type
    while not (events := await c.remote(t.take_events)):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    return [got, end, events]


@case
async def errors(c):
    try:
        await c.remote(t.fail, "lost")
    except RemoteCallError as error:
        first = [str(error), error.display_name, error.error.cancelled]
        first.append("in fail" in error.error.traceback)
    return [
        first,
        await error_of(c.remote(t.fail_sync, "k")),
        (await error_of(c.remote(t.add, "x")))[0],
        (await error_of(c.remote(t.add)))[0],
        (await error_of(c.remote(t.add, 1, 2, 3)))[0],
    ]


@case
async def cancel(c):
    """Ledger 11."""
    await c.remote(t.take_events)
    call = asyncio.ensure_future(c.remote(t.wait_long, "w"))
    await seen(c, "w began")
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(call, 0.1)
    await seen(c, "w cancelled")
    return "cancelled"


@case
async def user_cancelled_error(c):
    """Ledger 12."""
    return await error_of(c.remote(t.raise_cancelled))


@case
async def call_context(c):
    with c.call_context(call_id="mine"):
        first = await c.remote(t.add, 1, 1)
        second = await c.remote(t.add, 2, 2)
    return [first, second]


@case
async def same_call_id_twice(c):
    """Ledger 14: on one connection the second is refused; on another it is a call of its own."""
    async with RuntimeClient(c._base_url) as other:
        with c.call_context(call_id="same"):
            slow = asyncio.ensure_future(c.remote(t.sleep, 1.0))
            await asyncio.sleep(0.3)
        with other.call_context(call_id="same"):
            theirs = await other.remote(t.add, 1, 1)
        return [theirs, await slow]


@case
async def callables(c):
    counter = t.Counter(5)
    return [
        await c.remote(functools.partial(t.add, 1), 2),
        await c.remote(functools.partial(t.add, b=7), 1),
        await c.remote(counter),
        await c.remote(counter, 10),
        await c.remote(counter.value),
        counter.n,
        await c.remote(t.Counter.name),
        await c.remote(t.Counter.double, 4),
        await c.remote(len, [1, 2]),
        await c.remote("a".upper),
    ]


@case
async def lambda_refused(c):
    name, _ = await error_of(c.remote(lambda: 1))
    return [name in ("PicklingError", "AttributeError", "TypeError"), await c.remote(t.add, 1, 1)]


@case
async def output(c):
    """Ledger 1 and 2."""
    return [
        await c.remote(t.say, "hello"),
        await c.remote(t.child_says, "from a child"),
        (await c.remote(t.child_reads)).decode(),
        await c.remote(t.add, 1, 1),
    ]


@case
async def worker_dies(c):
    """Ledger 3."""
    results = []
    for target in (t.leave, t.crash):
        name, message = await error_of(c.remote(target))
        results += [name, message.startswith("runtime worker")]
        for _ in range(100):  # a call may still meet the one that is dying
            name, value = await error_of(c.remote(t.add, 1, 1))
            if name == "no error":
                break
        results.append(value)
    return results


@case
async def unpackable_results(c):
    """Ledger 5."""
    values = [
        await c.remote(f) for f in (t.when, t.identity, t.path, t.price, t.color, t.group, t.huge)
    ]
    name, _ = await error_of(c.remote(t.opaque))
    return [[type(v).__name__, str(v)] for v in values] + [name]


@case
async def integer_keys(c):
    """Ledger 6 and 7."""
    return [sorted((await c.remote(t.by_number)).items()), await c.remote(t.keys, {1: "a", 2: "b"})]


@case
async def arrays(c):
    """Ledger 8: one-byte types come in; going out they are an error, for this client hangs."""
    got = await c.remote(t.array, "<i4")
    results = [[str(got.dtype), got.tolist()]]
    for dtype in ("uint8", "bool", "int8", "float32"):
        results.append(await c.remote(t.array_sum, numpy.ones((2, 3), dtype)))
    for dtype in ("uint8", "bool"):
        name, _ = await error_of(c.remote(t.array, dtype))
        results.append(name)
    return [*results, await c.remote(t.add, 1, 1)]


@case
async def large_arguments(c):
    """Ledger 9."""
    sizes = (999_000, 1_000_000, 1_100_000, 4 << 20, 20_000_000)
    return [await c.remote(t.measure, b"x" * n) for n in sizes]


@case
async def large_results(c):
    """Ledger 10."""
    fits = len(await c.remote(t.blob, 4_194_200))
    errors_ = [(await error_of(c.remote(t.blob, n)))[0] for n in (4 << 20, 5_000_000, 20_000_000)]
    return [fits, *errors_, await c.remote(t.add, 1, 1)]


@case
async def sync_functions_in_threads(c):
    """Ledger 13."""
    slow = [asyncio.ensure_future(c.remote(t.sleep, 6.0)) for _ in range(2)]
    await asyncio.sleep(0.2)
    quick = await c.remote(t.add, 1, 1)
    beside = not any(each.done() for each in slow)
    both = await took(asyncio.gather(*slow))
    return [quick, beside, both < 11]  # one after the other: 12


@case
async def variadic(c):
    """Ledger 15."""
    name, _ = await error_of(c.remote(t.numbers, 1, "x"))
    return [await c.remote(t.numbers, 1, "2", x=3), name]


@case
async def sync_generator(c):
    """Ledger 16."""
    return await c.remote(t.generate, 4)


@case
async def generator_without_await(c):
    """Ledger 17: items come while it runs, others are served, and it can be cancelled."""
    items = c.remote(t.never_waits).__aiter__()
    got = [await anext(items) for _ in range(500)]
    other = await c.remote(t.add, 1, 1)
    await items.aclose()
    return [got == list(range(500)), other, await c.remote(t.add, 2, 2)]


@case
async def many_streams(c):
    async def one(i):
        return sum([x async for x in c.remote(t.count, 50)])

    return await asyncio.gather(*(one(i) for i in range(50)))


@case
async def in_flight(c):
    """For the test that stops the server: says when the call runs, and then how it ends."""
    call = asyncio.ensure_future(c.remote(t.wait_long, "stop"))
    await seen(c, "stop began")
    print("running", flush=True)
    return await error_of(call)


def poll_only():
    """The same client where every upgrade to a WebSocket fails."""
    connect = socketio.AsyncClient.connect

    async def polling(self, *args, **kwargs):
        await connect(self, *args, **kwargs | {"transports": ["polling"]})

    socketio.AsyncClient.connect = polling


async def run(url, name):
    client = RuntimeClient(url)
    try:
        return await asyncio.wait_for(cases[name](client), LIMIT_S)
    except TimeoutError:
        return {"hang": True}
    finally:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(client.close(), 60)


async def main(url, names):
    if "--polling" in names:
        names.remove("--polling")
        poll_only()
    for name in names or cases:
        print(json.dumps({"case": name, "result": await run(url, name)}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
