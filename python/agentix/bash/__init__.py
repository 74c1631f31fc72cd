"""Shell commands in a sandbox.

    result = await client.remote(bash.run, "ls -l", cwd="/workspace")
    async for event in client.remote(bash.run_stream, "make"): ...

Each command runs in its own process group, and the whole group is killed at a timeout, when
the call is cancelled, and when the shell has ended.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping
from typing import IO, Annotated, Literal

from pydantic import BaseModel, Field

__all__ = [
    "BashError",
    "BashEvent",
    "BashExit",
    "BashResult",
    "BashStderr",
    "BashStdout",
    "run",
    "run_stream",
]

MAX_OUTPUT = 10 << 20

_READ = 65536
_PIPE = 1 << 20  # the most that a pipe holds, unless root of the host allows more
# The time for reading output that the shell's children left in the pipes after its end.
_DRAIN_S = 1.0
# Variables of the runtime itself, which a command of the task must not inherit.
_SCRUBBED = ("LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "PYTHONHOME", "AGENTIX_TOKEN")


class BashResult(BaseModel):
    """The result of a command. `exit_code` -1: it was stopped at its timeout."""

    exit_code: int
    stdout: str
    stderr: str


class BashStdout(BaseModel):
    """A piece of standard output."""

    type: Literal["stdout"] = "stdout"
    data: str


class BashStderr(BaseModel):
    """A piece of standard error."""

    type: Literal["stderr"] = "stderr"
    data: str


class BashExit(BaseModel):
    """The command has ended; the last event."""

    type: Literal["exit"] = "exit"
    exit_code: int


class BashError(BaseModel):
    """The command could not be run to its end; the last event."""

    type: Literal["error"] = "error"
    message: str


BashEvent = Annotated[BashStdout | BashStderr | BashExit | BashError, Field(discriminator="type")]


def _environment(env: Mapping[str, str] | None) -> dict[str, str]:
    own = {k: v for k, v in os.environ.items() if k not in _SCRUBBED}
    return {**own, **(env or {})}


class _Shell:
    """A shell in its own session.

    Not asyncio's subprocess: that waits for the pipes too, which a child in the background may hold
    open for ever, and reaps the shell before we can kill its group. Until the shell is reaped, its
    group cannot be mistaken for another.
    """

    def __init__(self, command: str, cwd: str | None, env: Mapping[str, str] | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = subprocess.Popen(
            command,
            shell=True,
            cwd=cwd,
            env=_environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._outputs: list[tuple[asyncio.ReadTransport, asyncio.StreamReader, IO[bytes]]] = []
        self._draining: asyncio.TimerHandle | None = None
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self._pidfd = os.pidfd_open(self._process.pid)
        self._loop.add_reader(self._pidfd, self._on_exit)

    async def outputs(self) -> tuple[asyncio.StreamReader, asyncio.StreamReader]:
        """Standard output and standard error."""
        assert self._process.stdout and self._process.stderr
        return await self._reader(self._process.stdout), await self._reader(self._process.stderr)

    async def _reader(self, pipe: IO[bytes]) -> asyncio.StreamReader:
        reader = asyncio.StreamReader()
        transport, _ = await self._loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        self._outputs.append((transport, reader, pipe))
        return reader

    def _on_exit(self) -> None:
        """The shell has ended: ends the processes that it left behind."""
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._kill_group()
        code = self._process.wait()
        if not self.exited.done():
            self.exited.set_result(code)

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def end_outputs_after_exit(self) -> None:
        """Lets the outputs end soon after the shell, even if another process holds them open."""
        self.exited.add_done_callback(self._end_outputs_soon)

    def _end_outputs_soon(self, _: asyncio.Future[int]) -> None:
        self._draining = self._loop.call_later(_DRAIN_S, self._end_outputs)

    def _end_outputs(self) -> None:
        """Hands over what is in the pipes, and closes them."""
        for transport, reader, pipe in self._outputs:
            if transport.is_closing():
                continue
            with contextlib.suppress(BlockingIOError):  # nothing is in it
                reader.feed_data(os.read(pipe.fileno(), _PIPE))
            transport.close()

    async def stop(self) -> None:
        """Kills the group, waits for the shell, closes the pipes."""
        if self._process.returncode is None:
            self._kill_group()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(self.exited)
        if self._draining:
            self._draining.cancel()
        for transport, _, _ in self._outputs:
            transport.close()


async def _read_capped(stream: asyncio.StreamReader, into: bytearray, cap: int) -> None:
    """Reads all output up to the cap; drops the rest, so that the command can continue."""
    dropped = False
    while data := await stream.read(_READ):
        room = cap - len(into)
        into += data[:room]
        dropped = dropped or len(data) > room
    if dropped:
        into += f"\n[truncated at {cap} bytes]".encode()


async def run(
    command: str,
    cwd: str | None = None,
    env: dict[str, str] | None = None,
    timeout: float | None = None,  # noqa: ASYNC109  (the documented name)
    max_output: int = MAX_OUTPUT,
) -> BashResult:
    """Runs a command to its end. `max_output` is for each of the two outputs."""
    shell = _Shell(command, cwd, env)
    out, err = bytearray(), bytearray()
    try:
        stdout, stderr = await shell.outputs()
        readers = asyncio.gather(
            _read_capped(stdout, out, max_output), _read_capped(stderr, err, max_output)
        )
        try:
            async with asyncio.timeout(timeout):
                code = await asyncio.shield(shell.exited)
        except TimeoutError:
            message = f"Command timed out after {timeout}s"
            return BashResult(exit_code=-1, stdout=_text(out), stderr=message)
        finally:
            # Processes that left the group may hold the pipes open: wait for them only briefly.
            with contextlib.suppress(TimeoutError, asyncio.CancelledError):
                await asyncio.wait_for(readers, _DRAIN_S if shell.exited.done() else 0)
        return BashResult(exit_code=code, stdout=_text(out), stderr=_text(err))
    finally:
        await shell.stop()


def _text(data: bytes | bytearray) -> str:
    return data.decode("utf-8", "replace")


async def _forward(
    stream: asyncio.StreamReader,
    kind: type[BashStdout] | type[BashStderr],
    queue: asyncio.Queue[BashStdout | BashStderr | None],
) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a read may cut a character
    while data := await stream.read(_READ):
        if text := decoder.decode(data):
            await queue.put(kind(data=text))
    if text := decoder.decode(b"", True):
        await queue.put(kind(data=text))
    await queue.put(None)


async def _next(
    queue: asyncio.Queue[BashStdout | BashStderr | None], shell: _Shell, deadline: float | None
) -> BashStdout | BashStderr | None:
    """The timeout is for the command: output that it left behind has its own limit."""
    try:
        async with asyncio.timeout_at(deadline):
            return await queue.get()
    except TimeoutError:
        if not shell.exited.done():
            raise
        return await queue.get()


async def run_stream(
    command: str,
    cwd: str | None = None,
    env: dict[str, str] | None = None,
    timeout: float | None = None,  # noqa: ASYNC109  (the documented name)
) -> AsyncIterator[BashEvent]:
    """Runs a command and yields its output as it comes; `BashExit` or `BashError` is the last."""
    try:
        shell = _Shell(command, cwd, env)
    except OSError as e:
        yield BashError(message=str(e))
        return
    queue: asyncio.Queue[BashStdout | BashStderr | None] = asyncio.Queue(maxsize=16)
    tasks: list[asyncio.Task[None]] = []
    loop = asyncio.get_running_loop()
    deadline = None if timeout is None else loop.time() + timeout
    try:
        stdout, stderr = await shell.outputs()
        shell.end_outputs_after_exit()
        tasks = [
            loop.create_task(_forward(stdout, BashStdout, queue)),
            loop.create_task(_forward(stderr, BashStderr, queue)),
        ]
        ended = 0
        while ended < 2:
            event = await _next(queue, shell, deadline)
            if event is None:
                ended += 1
            else:
                yield event
        async with asyncio.timeout_at(deadline):
            code = await asyncio.shield(shell.exited)
        yield BashExit(exit_code=code)
    except TimeoutError:
        yield BashError(message=f"Command timed out after {timeout}s")
    finally:
        for task in tasks:
            task.cancel()
        await shell.stop()
