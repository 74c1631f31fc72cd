"""usage: client.py URL: sends 1 MiB to sio_echo with python-socketio and checks what comes back."""

import asyncio
import hashlib
import importlib.metadata
import os
import sys
import time

import socketio

SIZE = 1 << 20
TIMEOUT_S = 30


def milliseconds_since(start: float) -> str:
    """The time since `start`, as people read it."""
    return f"{(time.perf_counter() - start) * 1e3:.1f} ms"


async def run(url: str) -> None:
    """One connection, one acknowledged event."""
    client = socketio.AsyncClient(reconnection=False)
    start = time.perf_counter()
    await client.connect(url)
    try:
        version = importlib.metadata.version("python-socketio")
        print(
            f"client    python-socketio {version}, connected by {client.transport()} "
            f"in {milliseconds_since(start)}"
        )
        data = os.urandom(SIZE)
        start = time.perf_counter()
        summary, echo = await client.call("upload", data, timeout=TIMEOUT_S)
        took = milliseconds_since(start)
        print(f"sent      event 'upload' with {len(data)} random bytes")
        print(f"answered  {summary['bytes']} bytes, sha1 {summary['sha1']}, in {took} both ways")
        if summary != {"bytes": SIZE, "sha1": hashlib.sha1(data).hexdigest()}:
            raise SystemExit("demo: the server counted other bytes")
        if echo != data:
            raise SystemExit("demo: the echo differs")
        print("verified  the echo is the same, byte for byte")
    finally:
        await client.disconnect()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1]))
