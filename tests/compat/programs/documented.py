"""usage: PYTHON documented.py URL: uses only the documented API, with any package and any server.

Prints its results; the output must be the same for every client and every server.
"""

import asyncio
import sys

import compat_targets as t
from agentix import Bidi, Channel, RemoteCallError, RuntimeClient, Stream, Unary


async def shapes(client):
    inbox = Channel()
    for call in (client.remote(t.add, 1), client.remote(t.count, 2)):
        match call:
            case Unary():
                print("unary", await call)
            case Stream():
                print("stream", [i async for i in call])
    call = client.remote(t.running_sum, inbox, start=1)
    print("bidi", isinstance(call, Bidi), call.inbox is inbox)
    for i in range(3):
        await inbox.send(i)
    await inbox.close()
    print([total async for total in call])


async def values(client):
    print(repr(await client.remote(t.mirror, t.Point(x=1, y=2))))
    print(repr(await client.remote(t.flip, t.Pair(1, "2"))))
    print([repr(p) async for p in client.remote(t.count_points, 2)])
    print(await asyncio.gather(*(client.remote(t.add, i) for i in range(5))))
    print(await client.remote(t.Counter(3), 4), await client.remote(t.Counter.double, 4))
    print(await client.remote(t.untyped, 1, [2], x={"y": None}))


async def failures(client):
    try:
        await client.remote(t.fail, "lost")
    except RemoteCallError as error:
        print(error, "|", error.error.type, error.error.cancelled, bool(error.error.traceback))
    try:
        await client.remote(t.add, "x")
    except RemoteCallError as error:
        print(error.display_name, error.error.type)
    try:
        async for i in client.remote(t.count_and_fail, 2):
            print("item", i)
    except RemoteCallError as error:
        print(error)


async def leaving(client):
    with client.call_context(call_id="mine"):
        print(await client.remote(t.add, 2, 2))
    async for i in client.remote(t.count, 1000):
        if i == 3:
            print("enough")
            break
    try:
        async with asyncio.timeout(0.2):
            async for _ in client.remote(t.count, 1000, 10):
                pass
    except TimeoutError:
        print("too slow")


async def main(url):
    async with RuntimeClient(url) as client:
        print((await client.health()).status)
        await shapes(client)
        await values(client)
        await failures(client)
        await leaving(client)


asyncio.run(main(sys.argv[1]))
