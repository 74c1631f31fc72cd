"""usage: remote_driver.py URL [cold] < commands

Calls a runtime server through the client of this interpreter's package `agentix`, which is ours or
a peer's; the calls are the same. It prints `ready` after some calls, or with `cold` after the first
one. Each line of input is {"work": NAME, "seconds": N}; each answer is a line with one number.
"""

import asyncio
import json
import statistics
import sys
import time

import bench_target as target
from agentix import RuntimeClient

WARM_UP = 50
CONCURRENT = 64
STREAM = 2000


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p))]


async def one_by_one(client, fn, seconds, *args):
    """The seconds of each call, one call after another."""
    times, end = [], time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        await client.remote(fn, *args)
        times.append(time.perf_counter() - start)
    return times


async def p50(client, fn, seconds):
    return statistics.median(await one_by_one(client, fn, seconds, 1, 2)) * 1e6


async def p99(client, fn, seconds):
    return percentile(await one_by_one(client, fn, seconds, 1, 2), 0.99) * 1e6


async def concurrent(client, fn, seconds):
    """Calls per second with many callers on one connection."""
    start = time.perf_counter()
    callers = [one_by_one(client, fn, seconds, 1, 2) for _ in range(CONCURRENT)]
    done = sum(len(times) for times in await asyncio.gather(*callers))
    return done / (time.perf_counter() - start)


async def items(client, fn, seconds):
    """Stream items per second."""
    start, got = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        async for _ in client.remote(fn, STREAM):
            got += 1
    return got / (time.perf_counter() - start)


async def beside_stream(client, fn, seconds):
    """The p99 of unary calls in milliseconds while a stream runs at full speed."""
    stop = False

    async def stream():
        while not stop:
            async for _ in client.remote(target.count, STREAM):
                if stop:
                    break

    busy = asyncio.ensure_future(stream())
    value = await p99(client, fn, max(seconds, 0.5)) / 1000
    stop = True
    await busy
    return value


async def megabytes(client, fn, seconds, arg, size):
    """Megabytes of payload per second."""
    times = await one_by_one(client, fn, seconds, arg)
    return size * len(times) / sum(times) / 1e6


UP, DOWN = b"x" * 900_000, 1 << 20  # the peers' connections end at more than 1,000,000 bytes up
WORK = {
    "async_p50": lambda c, s: p50(c, target.add, s),
    "async_p99": lambda c, s: p99(c, target.add, s),
    "def_p50": lambda c, s: p50(c, target.add_sync, s),
    "async_64": lambda c, s: concurrent(c, target.add, s),
    "def_64": lambda c, s: concurrent(c, target.add_sync, s),
    "stream": lambda c, s: items(c, target.count, s),
    "beside_stream": lambda c, s: beside_stream(c, target.add, s),
    "up": lambda c, s: megabytes(c, target.size, s, UP, len(UP)),
    "down": lambda c, s: megabytes(c, target.make, s, DOWN, DOWN),
    "echo": lambda c, s: megabytes(c, target.echo, s, UP, 2 * len(UP)),
}


async def main():
    async with RuntimeClient(sys.argv[1]) as client:
        for _ in range(1 if "cold" in sys.argv else WARM_UP):
            await client.remote(target.add_sync, 1, 2)
        for _ in range(0 if "cold" in sys.argv else WARM_UP):
            await client.remote(target.add, 1, 2)
        print("ready", flush=True)
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            command = json.loads(line)
            value = await asyncio.wait_for(WORK[command["work"]](client, command["seconds"]), 60)
            print(value, flush=True)


asyncio.run(main())
