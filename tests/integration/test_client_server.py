"""Our client, server and worker together: each shape, also with a connection that breaks in it."""

import asyncio
import contextlib
import datetime
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import client_targets as targets
import pytest
from agentix import Channel, RemoteCallError, RuntimeClient
from agentix.runtime.client import CallTimeout, Reconnect, ResultUnavailable, WorkerExited
from agxtest.server import health, wait_for
from fake_runtime import scenario

HERE = Path(__file__).resolve().parent
WINDOW = Reconnect(delay=0.02, max_delay=0.2)


class Server:
    """agentix-server on a Unix socket."""

    def __init__(self, directory, *options):
        self.path = str(directory / "s")
        self.url = f"unix://{self.path}"
        self.command = [
            os.environ["AGENTIX_SERVER"], "--socket", self.path, "--python", sys.executable,
            "--package", os.environ["AGENTIX_PACKAGE"], "--path", str(HERE), *options,
        ]  # fmt: skip
        self.start()

    def start(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        self.process = subprocess.Popen(self.command, env=env, stderr=subprocess.DEVNULL)
        while True:
            try:
                with socket.socket(socket.AF_UNIX) as s:
                    s.connect(self.path)
                return
            except OSError:
                assert self.process.poll() is None, "the server did not start"
                time.sleep(0.01)

    def stop(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait()


async def running(server, n):
    """Waits until the server has so many calls."""
    await asyncio.to_thread(wait_for, lambda: health(server.path)["calls"] == n, "the calls run")


def end(sock):
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


class Cutter:
    """A Unix socket in front of the server; the test can cut its connections."""

    def __init__(self, directory, target):
        self.path = str(directory / "cut")
        self.url = f"unix://{self.path}"
        self.target = target
        self.pairs = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.target)
            self.pairs.append((near, far))
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    @staticmethod
    def pump(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        end(source)
        end(sink)

    def cut(self):
        for pair in self.pairs:
            for s in pair:
                end(s)
        self.pairs = []


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.stop()


@pytest.fixture
def cutter(server, tmp_path):
    cutter = Cutter(tmp_path, server.path)
    yield cutter
    cutter.listener.close()
    cutter.cut()


async def collect(stream):
    return [item async for item in stream]


async def put_into(got, stream):
    async for item in stream:
        got.append(item)


def test_each_shape_works(server):
    @scenario
    async def main():
        async with RuntimeClient(server.url) as client:
            assert (await client.health()).status == "ok"
            assert await client.remote(targets.add, 1, b=2) == 3
            assert await client.remote(targets.async_add, 1) == 1
            assert await client.remote(targets.Multiplier(3).times, 5) == 15
            assert await client.remote(targets.Multiplier(4), n=5) == 20
            assert await collect(client.remote(targets.count, 1000)) == list(range(1000))
            channel = Channel(maxsize=4)
            talk = asyncio.ensure_future(collect(client.remote(targets.scale, channel, factor=3)))
            for i in range(1000):
                await channel.send(i)
            await channel.close()
            assert await talk == [3 * i for i in range(1000)]
            many = [client.remote(targets.async_add, i, i) for i in range(500)]
            assert await asyncio.gather(*many) == [2 * i for i in range(500)]
            assert client._pending == {}

    main()


def test_values_of_every_kind_come_back(server):
    @scenario
    async def main():
        async with RuntimeClient(server.url) as client:
            value = {"a": [1, 2.5, None, True, "ä", b"\0\xff", 2**64 - 1], 3: {"c": []}}
            assert await client.remote(targets.echo, value) == value
            big = os.urandom(5_000_000)
            assert await client.remote(targets.echo, big) == big
            day = datetime.date(2026, 1, 2)
            got = await client.remote(targets.shift, day, targets.Point(1, 2), targets.Color.RED)
            assert got == (datetime.date(2026, 1, 3), targets.Point(2, 2), targets.Color.RED)

    main()


def test_errors_deadlines_and_cancellation(server):
    @scenario
    async def main():
        async with RuntimeClient(server.url) as client:
            with pytest.raises(RemoteCallError, match="ValueError: no good") as caught:
                await client.remote(targets.fail, "no good")
            assert "Traceback" in caught.value.error.traceback
            with pytest.raises(RemoteCallError, match="after"):
                await collect(client.remote(targets.fail_after, 2))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.remote(targets.sleep, 30), 0.1)
            with pytest.raises(CallTimeout):
                await client.options(timeout=0.1).remote(targets.sleep, 30)
            async for item in client.remote(targets.forever):
                if item == 3:
                    break
            assert await client.remote(targets.add, 1) == 1
            assert client._pending == {}

    main()


def test_a_slow_reader_holds_back_its_producer_and_nobody_else(server):
    @scenario
    async def main():
        async with RuntimeClient(server.url) as client:
            stream = aiter(client.remote(targets.count, 10_000))
            assert await anext(stream) == 0
            await asyncio.sleep(0.3)
            assert len(client._pending) == 1
            for i in range(100):
                assert await client.remote(targets.add, i) == i
            assert await collect(stream) == list(range(1, 10_000))

    main()


def test_the_death_of_the_worker_ends_calls_and_the_next_one_works(server):
    @scenario
    async def main():
        async with RuntimeClient(server.url) as client:
            sleeping = asyncio.ensure_future(client.remote(targets.sleep, 30))
            endless = asyncio.ensure_future(collect(client.remote(targets.forever)))
            talk = asyncio.ensure_future(collect(client.remote(targets.scale, Channel())))
            await running(server, 3)
            with pytest.raises(WorkerExited) as caught:
                await client.remote(os.kill, await client.remote(os.getpid), signal.SIGKILL)
            assert caught.value.returncode == -signal.SIGKILL
            for call in (sleeping, endless, talk):
                with pytest.raises(WorkerExited):
                    await call
            assert await client.remote(targets.add, 1) == 1

    main()


def test_connections_cut_again_and_again_lose_and_double_nothing(cutter):
    @scenario
    async def main():
        async with RuntimeClient(cutter.url, reconnect=WINDOW) as client:
            channel = Channel(maxsize=1)
            items, scaled, answers = [], [], []
            stream = put_into(items, client.remote(targets.count, 20_000))
            talk = put_into(scaled, client.remote(targets.scale, channel, factor=2))
            slept = asyncio.ensure_future(client.remote(targets.sleep, 1))

            async def feed():
                for i in range(5000):
                    await channel.send(i)
                await channel.close()

            async def ask():
                for i in range(2000):
                    answers.append(await client.remote(targets.async_add, i, i))

            def arrived():
                return len(items) + len(scaled) + len(answers)

            work = asyncio.gather(stream, talk, slept, feed(), ask())
            cuts, before = 0, 0
            while not work.done():
                await asyncio.sleep(0.1)
                # The work continues, however slowly.
                while arrived() == before and not work.done():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                before = arrived()
                cutter.cut()
                cuts += 1
            await work
            assert answers == [2 * i for i in range(2000)]
            assert items == list(range(20_000))
            assert scaled == [2 * i for i in range(5000)]
            assert slept.result() == "slept" and cuts >= 3
            assert client._pending == {}

    main()


def test_the_death_of_the_server_ends_the_calls_and_its_successor_takes_new_ones(tmp_path):
    server = Server(tmp_path)

    @scenario
    async def main():
        async with RuntimeClient(server.url, reconnect=WINDOW) as client:
            calls = [
                asyncio.ensure_future(client.remote(targets.sleep, 30)),
                asyncio.ensure_future(collect(client.remote(targets.forever))),
                asyncio.ensure_future(collect(client.remote(targets.scale, Channel()))),
            ]
            await running(server, 3)
            await asyncio.to_thread(server.stop)
            await asyncio.to_thread(server.start)
            for call in calls:
                with pytest.raises(ResultUnavailable):
                    await call
            assert await client.remote(targets.add, 1) == 1

    main()
    server.stop()


def test_a_server_that_is_told_to_stop_ends_the_calls(tmp_path):
    server = Server(tmp_path, "--grace", "100ms")

    @scenario
    async def main():
        async with RuntimeClient(server.url, reconnect=False) as client:
            call = asyncio.ensure_future(client.remote(targets.sleep, 30))
            await running(server, 1)
            await asyncio.to_thread(server.stop, signal.SIGTERM)
            with pytest.raises(RemoteCallError):
                await call
        assert server.process.returncode == 0

    main()


def test_a_token_is_asked_for(tmp_path):
    token = tmp_path / "token"
    token.write_text("s3cret")
    token.chmod(0o600)
    server = Server(tmp_path, "--token-file", str(token))

    @scenario
    async def main():
        async with RuntimeClient(server.url, token="s3cret") as client:
            assert await client.remote(targets.add, 1) == 1
        for wrong in ("other", None):
            async with RuntimeClient(server.url, token=wrong, timeout=10) as client:
                with pytest.raises(ConnectionError):
                    await client.remote(targets.add, 1)

    main()
    server.stop()
