"""usage: main.py URL

Calls the functions of words.py through agentix-server, in each of the three shapes, and says what
happened.
"""

import asyncio
import os
import socket
import sys
import time

import words
from agentix import Channel, RemoteCallError, RuntimeClient


def say(shape: str, text: str) -> None:
    print(f"{shape:<9} {text}")


async def main(url: str) -> None:
    async with RuntimeClient(url) as client:
        start = time.perf_counter()
        pid, host = await client.remote(words.where)
        taken = (time.perf_counter() - start) * 1000
        them = f"from process {pid} on '{host}'"
        us = f"we are {os.getpid()} on '{socket.gethostname()}'"
        say("connect", f"first result after {taken:.1f} ms, {them} ({us})")

        word = await client.remote(words.longest, ["a", "bundle", "of"])
        say("unary", f"longest(['a', 'bundle', 'of']) -> {word!r}")

        got = [letter async for letter in client.remote(words.letters, "agentix")]
        say("stream", f"letters('agentix') -> {got}")

        inbox: Channel[str] = Channel()
        call = client.remote(words.shout, inbox)
        heard = []
        await inbox.send("hello")
        async for word in call:
            heard.append(word)
            if len(heard) == 1:
                await inbox.send("again")
                await inbox.close()
        say("bidi", f"shout('hello', then 'again' after its answer) -> {heard}")

        try:
            await client.remote(words.broken)
        except RemoteCallError as error:
            say("error", str(error))

        start, calls = time.perf_counter(), 1000
        for _ in range(calls):
            await client.remote(words.longest, ["a", "b"])
        taken = (time.perf_counter() - start) / calls * 1e6
        say("speed", f"{calls} calls one after another, {taken:.0f} us each")


asyncio.run(main(sys.argv[1]))
