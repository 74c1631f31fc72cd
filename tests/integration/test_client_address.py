"""Addresses: TCP, TLS with certificate checks, proxies, extra headers, health."""

import asyncio
import json
import ssl
import subprocess
import time

import client_targets as targets
import pytest
from agentix import RuntimeClient
from agentix.runtime.client import RuntimeUnreachable
from agentix.runtime.client._address import Address, proxy_for
from fake_runtime import FakeRuntime, Peer, scenario


def spawn(awaitable):
    return asyncio.ensure_future(awaitable)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """Makes a key and a self-signed certificate for localhost."""
    where = tmp_path_factory.mktemp("tls")
    key, cert = where / "key.pem", where / "cert.pem"
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        f"-keyout {key} -out {cert} -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    subprocess.run(command.split(), check=True, capture_output=True)
    return key, cert


def server_context(certificate):
    key, cert = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context


@scenario
async def test_tcp_with_headers_and_a_query():
    async with FakeRuntime(tcp=True) as server:
        url = f"{server.url}/ignored?route=7"
        async with RuntimeClient(url, headers={"X-Route": "a"}) as client:
            call = spawn(client.remote(targets.add, 1))
            peer = await server.greet()
            assert peer.path.startswith("/socket.io/?route=7&EIO=4")
            assert peer.headers["x-route"] == "a"
            assert peer.headers["host"] == f"localhost:{server.port}"
            peer.answer(await peer.expect("unary"), 1)
            assert await call == 1


def test_a_header_cannot_smuggle_another():
    async def main():
        async with FakeRuntime() as server:
            client = RuntimeClient(server.url, headers={"X": "a\r\nY: b"})
            with pytest.raises(RuntimeUnreachable, match="line break"):
                await client.remote(targets.add, 1)
            await client.close()

    asyncio.run(main())


def test_tls_works_with_a_certificate_that_is_trusted_and_only_then(certificate):
    @scenario
    async def main():
        async with FakeRuntime(tcp=True, ssl=server_context(certificate)) as server:
            trust = ssl.create_default_context(cafile=certificate[1])
            async with RuntimeClient(server.url, ssl=trust) as client:
                call = spawn(client.remote(targets.echo, b"x" * 3_000_000))
                peer = await server.greet()
                fields = await peer.expect("unary")
                peer.answer(fields, fields["args"][0])
                assert await call == b"x" * 3_000_000
                again = spawn(client.remote(targets.sleep, 1))
                fields = await peer.expect("unary")
                peer.drop()
                peer = await server.greet(resumed=True)
                await peer.expect("resume")
                peer.send("resume:done", known=[[fields["call_id"], 0]], unknown=[])
                peer.answer(fields, "slept")
                assert await again == "slept"
            async with RuntimeClient(server.url) as client:
                with pytest.raises(RuntimeUnreachable, match="certificate"):
                    await client.remote(targets.add, 1)
            async with RuntimeClient(server.url.replace("localhost", "127.0.0.1"), ssl=trust) as c:
                with pytest.raises(RuntimeUnreachable, match=r"127\.0\.0\.1"):
                    await c.remote(targets.add, 1)

    main()


async def _tunnel(reader, writer, asked):
    """A proxy that supports CONNECT."""
    peer = Peer(reader, writer)
    asked.append((await peer.read_head(), peer.headers))
    host, port = peer.path.rsplit(":", 1)
    other_reader, other_writer = await asyncio.open_connection(host, int(port))
    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

    async def pump(source, sink):
        while data := await source.read(65536):
            sink.write(data)
        sink.close()

    await asyncio.gather(pump(reader, other_writer), pump(other_reader, writer))


@pytest.mark.parametrize("tls", [False, True])
def test_a_proxy_is_asked_to_connect(certificate, monkeypatch, tls):
    @scenario
    async def main():
        asked = []
        context = server_context(certificate) if tls else None
        proxy = await asyncio.start_server(lambda r, w: _tunnel(r, w, asked), "127.0.0.1", 0)
        port = proxy.sockets[0].getsockname()[1]
        monkeypatch.setenv("HTTPS_PROXY" if tls else "HTTP_PROXY", f"http://me:pw@127.0.0.1:{port}")
        trust = ssl.create_default_context(cafile=certificate[1])
        async with FakeRuntime(tcp=True, ssl=context) as server:
            async with RuntimeClient(server.url, ssl=trust if tls else None) as client:
                call = spawn(client.remote(targets.add, 1))
                peer = await server.greet()
                peer.answer(await peer.expect("unary"), 1)
                assert await call == 1
            first, headers = asked[0]
            assert first == f"CONNECT localhost:{server.port} HTTP/1.1"
            assert headers["proxy-authorization"] == "Basic bWU6cHc="
            monkeypatch.setenv("NO_PROXY", "localhost")
            async with RuntimeClient(server.url, ssl=trust if tls else None) as client:
                call = spawn(client.remote(targets.add, 1))
                peer = await server.greet()
                peer.answer(await peer.expect("unary"), 1)
                await call
            assert len(asked) == 1
        proxy.close()

    main()


def test_a_unix_socket_has_no_proxy(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "http://proxy:1")
    assert proxy_for(Address.parse("unix:///run/x.sock")) is None
    assert proxy_for(Address.parse("http://host:80")).host == "proxy"
    monkeypatch.setenv("ALL_PROXY", "socks5://u:secret@proxy:1")
    with pytest.raises(ValueError, match="socks5://proxy:1"):
        proxy_for(Address.parse("http://host"))


@pytest.mark.parametrize("url", ["ftp://x", "host:80", "http://", "unix://relative/s"])
def test_an_address_that_makes_no_sense_is_refused_at_once(url):
    with pytest.raises(ValueError):
        RuntimeClient(url)


def test_addresses_are_written_as_they_are_reached():
    assert str(Address.parse("https://h")) == "https://h"
    assert Address.parse("http://[::1]:8000").authority == "[::1]:8000"
    assert Address.parse("unix:///a/b.sock").unix_path == "/a/b.sock"
    assert Address.parse("http://h/prefix/").path == "/prefix"


@scenario
async def test_health_reads_the_answer():
    async with FakeRuntime(tcp=True) as server:  # noqa: SIM117
        async with RuntimeClient(server.url + "/prefix", token="t") as client:
            asked = spawn(client.health())
            peer = await server.accept()
            assert await peer.read_head() == "GET /prefix/health HTTP/1.1"
            assert peer.headers["authorization"] == "Bearer t"
            body = json.dumps({"status": "ok", "version": "0.1.1", "more": 1}).encode()
            peer.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            health = await asked
            assert (health.status, health.version) == ("ok", "0.1.1")
            asked = spawn(client.health())
            peer = await server.accept()
            await peer.read_head()
            await peer.refuse(503, b'{"detail":"starting"}')
            with pytest.raises(RuntimeUnreachable, match=r"503.*starting"):
                await asked


def test_nothing_is_left_behind_by_a_thousand_calls():
    import gc
    import os

    @scenario
    async def main():
        async with FakeRuntime() as server, RuntimeClient(server.url) as client:

            async def serve():
                peer = await server.greet()
                while True:
                    name, fields = await peer.next()
                    if name == "unary":
                        peer.answer(fields, 1)

            serving = spawn(serve())
            started = time.monotonic()
            for _ in range(20):
                await asyncio.gather(*[client.remote(targets.add, 1) for _ in range(50)])
            assert client._pending == {}
            assert time.monotonic() - started < 60
            serving.cancel()

    before = len(os.listdir("/proc/self/fd"))
    main()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before
