"""RuntimeClient calls C functions by declarations: each shape succeeds, fails, is cancelled, dies.

The tests run with the worker without Python and with the Python worker."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agentix import Channel, RemoteCallError, RuntimeClient
from agentix.runtime.client import CallTimeout, WorkerExited, reference
from agxtest.server import TIMEOUT_S, wait_for

FUNCTIONS = os.environ["TEST_FUNCTIONS"]
TARGETS = Path(__file__).resolve().parent / "targets"


@reference("c:functions::add")
def add(a: int, b: int) -> int: ...


@reference("c:functions::fail")
def fail() -> None: ...


@reference("c:functions::sleep_wait")
async def sleep_wait(ms: int = 600000) -> None: ...


@reference("c:functions::abort")
def abort() -> None: ...


@reference("c:functions::count")
def count(n: int) -> AsyncIterator[int]: ...


@reference("c:functions::count_and_fail")
def count_and_fail() -> AsyncIterator[int]: ...


@reference("c:functions::endless")
def endless() -> AsyncIterator[bytes]: ...


@reference("c:functions::count_and_abort")
def count_and_abort(n: int) -> AsyncIterator[int]: ...


@reference("c:functions::upper")
def upper(inbox: Channel[str]) -> AsyncIterator[str]: ...


@reference("c:functions::upper")
def upper_of_anything(inbox: Channel) -> AsyncIterator[str]: ...


@reference("c:functions::upper_or_abort")
def upper_or_abort(inbox: Channel[str]) -> AsyncIterator[str]: ...


@reference("phases::aadd")
def python_add(a: int, b: int) -> int: ...


@pytest.fixture(name="server", params=["agentix-worker", "python"])
def fixture_server(request, serve):
    if request.param == "agentix-worker":
        return serve("--path", FUNCTIONS, worker=os.environ["AGENTIX_WORKER"])
    return serve_python(serve)


def serve_python(serve):
    package = os.environ["AGENTIX_PACKAGE"]
    path = f"{FUNCTIONS}:{TARGETS}"
    return serve("--python", sys.executable, "--package", package, "--path", path)


def run(server, main):
    async def connected():
        async with RuntimeClient(f"unix://{server.socket_path}") as client:
            await asyncio.wait_for(main(client), TIMEOUT_S)

    asyncio.run(connected())


async def rest(items):
    """Reads a stream to its end: the values, and the error or None."""
    values = []
    try:
        async for item in items:
            values.append(item)
    except RemoteCallError as error:
        return values, error
    return values, None


async def talk(client, fn, *items):
    """Sends each item after the answer to the previous one, and ends the input."""
    inbox = Channel()
    await inbox.send(items[0])
    values = []
    try:
        async for value in client.remote(fn, inbox):
            values.append(value)
            if len(values) < len(items):
                await inbox.send(items[len(values)])
            else:
                await inbox.close()
    except RemoteCallError as error:
        return values, error
    return values, None


def test_each_shape(server):
    async def main(client):
        assert await client.remote(add, 2, 3) == 5
        assert await client.remote(add, a=2, b=4) == 6
        assert await rest(client.remote(count, 1000)) == (list(range(1000)), None)
        assert await talk(client, upper, "a", "bc") == (["A", "BC"], None)

    run(server, main)


def test_a_failure_in_each_shape(server):
    async def main(client):
        with pytest.raises(RemoteCallError) as caught:
            await client.remote(fail)
        assert str(caught.value) == "c:functions::fail: ValueError: this is 1 too many"
        values, error = await rest(client.remote(count_and_fail))
        assert (values, error.error.message) == ([1], "after one")
        values, error = await talk(client, upper_of_anything, "a", 5)
        assert (values, error.error.type) == (["A"], "TypeError")

    run(server, main)


def test_a_cancel_in_each_shape_frees_the_worker(server):
    async def main(client):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.remote(sleep_wait), 0.2)
        with pytest.raises(CallTimeout):
            await client.options(timeout=0.2).remote(sleep_wait)
        items = client.remote(endless).__aiter__()
        assert await anext(items) == bytes(1024)
        await items.aclose()
        inbox = Channel()
        await inbox.send("a")
        items = client.remote(upper, inbox).__aiter__()
        assert await anext(items) == "A"
        await items.aclose()
        await asyncio.to_thread(
            wait_for, lambda: server.health()["calls"] == 0, "the worker has ended the calls"
        )

    run(server, main)


def test_a_crash_in_each_shape_ends_the_worker_and_not_the_server(server):
    async def main(client):
        with pytest.raises(WorkerExited) as caught:
            await client.remote(abort)
        assert caught.value.returncode == -6
        values, error = await rest(client.remote(count_and_abort, 2))
        assert values == [0, 1] and isinstance(error, WorkerExited)
        values, error = await talk(client, upper_or_abort, "a", "abort")
        assert values == ["A"] and isinstance(error, WorkerExited)
        assert await client.remote(add, 1, 2) == 3

    run(server, main)


def test_a_python_function_that_is_only_there(serve):
    async def main(client):
        assert await client.remote(python_add, 1, 2) == 3

    run(serve_python(serve), main)


@pytest.mark.parametrize("target", ["", "add", "c:functions", "::add", "functions::"])
def test_a_target_without_both_names_is_refused(target):
    with pytest.raises(ValueError, match="a target is"):
        reference(target)
