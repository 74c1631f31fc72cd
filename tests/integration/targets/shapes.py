"""Functions for the worker's tests: every shape, and every kind of failure."""

import asyncio
import contextvars
import ctypes
import functools
import gc
import os
import sys
import threading
import time

from agentix import Channel

seen = []
all_are_here = asyncio.Event()
variable = contextvars.ContextVar("variable", default="unset")


def forget():
    seen.clear()


def what_was_seen() -> list:
    return list(seen)


# ---- unary ----


def plain(value):
    return value


async def coroutine(value):
    return value


async def later(value, seconds: float = 0.01):
    await asyncio.sleep(seconds)
    return value


def returns_coroutine(value):
    return later(value)


def numbers(n: int):
    yield from range(n)


def too_many():
    while True:
        yield 0


def block(seconds: float, value=None):
    time.sleep(seconds)
    return value


def block_until(path: str, value=None):
    """Holds its thread until there is such a file."""
    seen.append("blocked")
    while not os.path.exists(path):
        time.sleep(0.005)
    return value


async def how_many_blocked() -> int:
    return seen.count("blocked")


def thread_name():
    return threading.current_thread() is threading.main_thread()


async def loop_facts():
    task = asyncio.current_task()
    async with asyncio.timeout(1):
        await asyncio.sleep(0)
    return [task is not None, threading.current_thread() is threading.main_thread()]


def set_variable(value):
    before = variable.get()
    variable.set(value)
    return before


async def aset_variable(value):
    return set_variable(value)


class Counter:
    """A callable whose state travels in its pickle."""

    def __init__(self, n=0):
        self.n = n

    def __call__(self):
        self.n += 1
        return self.n

    def add(self, k: int):
        self.n += k
        return self.n

    async def aadd(self, k: int):
        return self.add(k)

    @classmethod
    def made(cls, n: int):
        return cls(n).n

    @staticmethod
    def double(n: int):
        return 2 * n


class Async:
    async def __call__(self, x):
        return [x, asyncio.current_task() is not None]


def decorated(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        return fn(*args, **kwargs)

    return inner


@decorated
def wrapped(a: int) -> int:
    return a


@decorated
async def wrapped_async(a: int) -> int:
    return a


# ---- failures ----


def fail(text):
    raise KeyError(text)


async def afail(text):
    await asyncio.sleep(0)
    raise LookupError(text)


def raise_cancelled():
    raise asyncio.CancelledError("mine")


async def araise_cancelled():
    raise asyncio.CancelledError("mine")


async def later_raise_cancelled():
    await asyncio.sleep(0.001)
    raise asyncio.CancelledError("mine")


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def fail_unprintable():
    raise Unprintable


def fail_surrogate():
    raise ValueError("\ud800")


def leave(code=3):
    sys.exit(code)


@functools.cache
def the_worker():
    return next(o for o in gc.get_objects() if type(o).__name__ == "Glue").worker


def calls_in_flight() -> int:
    return the_worker().active


def leave_as_the_last(code=3):
    """When every other call has its answer, written or not."""
    while calls_in_flight() > 1:
        time.sleep(0.001)
    sys.exit(code)


def drain(place, seconds):
    """What the worker does before its process ends."""
    worker = the_worker()
    open(f"{place}/begun", "w").close()
    worker.drain(seconds)
    open(f"{place}/done", "w").close()


async def aleave(code=3):
    sys.exit(code)


async def later_leave(code=3):
    await asyncio.sleep(0.001)
    sys.exit(code)


def interrupt():
    raise KeyboardInterrupt


def vanish():
    os._exit(7)


def crash():
    ctypes.string_at(0)


def noise():
    print("x" * 100_000)
    os.write(1, b"raw bytes to 1\n")
    os.system("cat; echo child")
    return "quiet"


# ---- cancel ----


async def wait_for_ever():
    seen.append("started")
    try:
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        seen.append("cancelled")
        raise


async def survive_cancel():
    try:
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        return "survived"


def spin_for_ever():
    try:
        seen.append("started")  # in here: who reads it may cancel before the next instruction
        while True:
            time.sleep(0.001)
    except asyncio.CancelledError:
        seen.append("cancelled")
        raise


async def stream_for_ever():
    try:
        n = 0
        while True:
            yield n
            n += 1
    except asyncio.CancelledError:
        seen.append("cancelled")
        raise
    finally:
        seen.append("closed")


async def stream_that_waits():
    try:
        yield 1
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        seen.append("cancelled")
        raise


# ---- streams ----


async def count(n: int):
    for i in range(n):
        yield i


async def count_slowly(n: int, seconds: float = 0.001):
    for i in range(n):
        await asyncio.sleep(seconds)
        yield i


async def count_together(n: int, others: int):
    """Begins to count when so many of it run."""
    seen.append("together")
    if seen.count("together") == others:
        all_are_here.set()
    await all_are_here.wait()
    for i in range(n):
        yield i


async def chunks(n: int, size: int):
    for _ in range(n):
        seen.append(1)
        yield b"x" * size


async def fail_after(n: int):
    for i in range(n):
        yield i
    raise ValueError("after all")


async def bad_item():
    try:
        yield 1
        yield object()
        seen.append("went on")
    finally:
        seen.append("closed")


# ---- bidi ----


async def echo(ch: Channel[int], times: int = 1):
    try:
        async for item in ch:
            for _ in range(times):
                yield item
    except asyncio.CancelledError:
        seen.append("cancelled")
        raise
    finally:
        seen.append("closed")


async def echo_slowly(ch: Channel[int]):
    try:
        async for item in ch:
            await asyncio.sleep(0.02)
            yield item
    finally:
        seen.append("closed")


async def echo_from_a_task(ch: Channel[int]):
    try:
        while True:
            try:
                yield await asyncio.create_task(anext_of(ch))
            except StopAsyncIteration:
                return
    finally:
        seen.append("closed")


async def anext_of(ch):
    return await anext(ch)


async def echo_stubbornly(ch: Channel[int]):
    try:
        async for item in ch:
            yield item
    except asyncio.CancelledError:
        seen.append("cancelled")
        yield "more"
        yield "and more"
    finally:
        seen.append("closed")


async def echo_any(ch: Channel):
    async for item in ch:
        yield item


async def take(ch: Channel[int], n: int):
    async for item in ch:
        yield item
        n -= 1
        if n == 0:
            return


async def ignore_input(ch: Channel[bytes]):
    yield "ready"
    await asyncio.sleep(1000)


class NoSchema:
    pass


async def no_schema(ch: Channel[NoSchema]):
    async for item in ch:
        yield item
