"""Our client against the real server of agentixx 0.1.5: that server's features work; others give an
error and never a hang.
"""

import asyncio
import os
import subprocess
import urllib.request
from pathlib import Path

import client_targets as targets
import pytest
from agentix import Channel, RemoteCallError, RuntimeClient
from agentix.runtime.client import CallTimeout, MessageTooLarge, ResultUnavailable
from agxtest.server import free_port, wait_for
from fake_runtime import scenario

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent


class Server:
    """agentix-server of 0.1.5 as a child process."""

    def __init__(self):
        made = subprocess.run(
            [ROOT / "tools/peer_env", "agentixx-0.1.5"], capture_output=True, text=True, check=False
        )
        if made.returncode != 0:
            pytest.skip(f"agentixx 0.1.5 cannot be installed: {made.stderr[-300:]}")
        port = free_port()
        # The targets are in its working directory, which is on the path of its worker.
        self.process = subprocess.Popen(
            [
                made.stdout.strip() + "/bin/agentix-server",
                "--host",
                "127.0.0.1",
                "--port",
                str(port),
            ],
            cwd=HERE,
            env={k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.url = f"http://127.0.0.1:{port}"
        wait_for(self.is_up, "the peer's server is up")

    def is_up(self):
        try:
            return urllib.request.urlopen(self.url + "/health", timeout=5).read()
        except OSError:
            return False

    def stop(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def url():
    server = Server()
    yield server.url
    server.stop()


async def collect(stream):
    return [item async for item in stream]


def test_each_shape_works(url):
    @scenario
    async def main():
        async with RuntimeClient(url) as client:
            assert (await client.health()).status == "ok"
            assert await client.remote(targets.add, 1, b=2) == 3
            assert await client.remote(targets.async_add, 1) == 1
            assert await client.remote(targets.Multiplier(3).times, 5) == 15
            assert await client.remote(targets.Multiplier(4), n=5) == 20
            assert await collect(client.remote(targets.count, 300)) == list(range(300))
            channel = Channel()
            talk = asyncio.ensure_future(collect(client.remote(targets.scale, channel, factor=3)))
            for i in range(200):
                await channel.send(i)
            await channel.close()
            assert await talk == [3 * i for i in range(200)]
            many = [client.remote(targets.add, i, i) for i in range(200)]
            assert await asyncio.gather(*many) == [2 * i for i in range(200)]
            assert client._pending == {}

    main()


def test_values_travel_by_their_annotation(url):
    @scenario
    async def main():
        import datetime

        async with RuntimeClient(url) as client:
            value = {"a": [1, 2.5, None, True, "ä", b"\0\xff"], "b": {"c": []}}
            assert await client.remote(targets.echo, value) == value
            assert await client.remote(targets.echo, {1: "x"}) == {"1": "x"}
            point = targets.Point(1, 2)
            assert await client.remote(targets.echo, point) == {"x": 1, "y": 2}
            with pytest.raises(TypeError, match="cannot encode"):
                await client.remote(targets.echo, datetime.date(2026, 1, 1))

    main()


def test_errors_and_cancellation(url):
    @scenario
    async def main():
        async with RuntimeClient(url) as client:
            with pytest.raises(RemoteCallError, match="ValueError: no good") as caught:
                await client.remote(targets.fail, "no good")
            assert "Traceback" in caught.value.error.traceback
            with pytest.raises(RemoteCallError, match="TypeError"):
                await client.remote(targets.add)
            with pytest.raises(RemoteCallError, match="after"):
                await collect(client.remote(targets.fail_after, 2))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.remote(targets.sleep, 30), 0.3)
            with pytest.raises(CallTimeout):
                await client.options(timeout=0.3).remote(targets.sleep, 30)
            async for item in client.remote(targets.forever):
                if item == 3:
                    break
            assert await client.remote(targets.add, 1) == 1
            assert client._pending == {}

    main()


def test_the_limits_of_that_server_are_errors(url):
    @scenario
    async def main():
        async with RuntimeClient(url) as client:
            assert len(await client.remote(targets.echo, b"x" * 990_000)) == 990_000
            with pytest.raises(MessageTooLarge, match="takes 1000000"):
                await client.remote(targets.echo, b"x" * 1_000_000)
            assert await client.remote(targets.add, 1) == 1

    main()


@scenario
async def test_calls_end_when_that_server_dies():
    server = await asyncio.to_thread(Server)
    async with RuntimeClient(server.url) as client:
        assert await client.remote(targets.add, 1) == 1
        calls = [
            asyncio.ensure_future(client.remote(targets.sleep, 30)),
            asyncio.ensure_future(collect(client.remote(targets.forever))),
            asyncio.ensure_future(collect(client.remote(targets.scale, Channel()))),
        ]
        await asyncio.sleep(0.5)
        server.stop()
        for call in calls:
            with pytest.raises(ResultUnavailable):
                await call
