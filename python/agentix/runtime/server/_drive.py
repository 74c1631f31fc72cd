"""Async generators on the loop: streams, and bidi calls with their input."""

import asyncio

from agentix.runtime.server._errors import INPUT, RUN
from agentix.runtime.server._prepare import Validator
from agentix.runtime.shared.rpc import Channel

# The credit that a call begins with (codec/credit.h), and when to grant more.
CREDIT_ITEMS, CREDIT_BYTES = 64, 49152


class Inbox(Channel):
    """The channel that a bidi function reads; frames fill it. An item is validated when the
    function takes it, so that the items before a bad one are answered first."""

    def __init__(self, call, annotation):
        super().__init__()
        self.task = None  # drives the generator
        self._call, self._validate = call, Validator(annotation)
        self._taken = self._taken_bytes = self._seen = self._seen_bytes = 0

    def feed(self, item, size, error=None):
        """Called for each received item."""
        if not self._closed:
            self._items.append((item, size, error))
            self._wake(self._takers)

    def broken(self, error):
        """Called for an item that cannot be unpacked. It waits for its turn like any other."""
        self.feed(None, 0, error)

    def end(self):
        """Called at the end of the input."""
        self._closed = True
        while self._takers:
            self._wake(self._takers)

    def _refuse(self, error):
        """An item does not match the annotation: ends the call, and closes the generator."""
        self._call.fail(error, INPUT)
        self._items.clear()
        self.end()
        self.task.cancel()

    def leave(self):
        """Called when the call is over: breaks the reference cycle of call and inbox."""
        self._items.clear()
        self.end()
        self.task = self._call = None

    async def send(self, item):
        raise RuntimeError("the input of a bidi call is the caller's")

    async def close(self):
        """Takes no more input."""
        self._items.clear()
        self.end()

    def _count(self, size):
        """An item was taken: grants the caller more credit."""
        self._taken += 1
        self._taken_bytes += size
        if (
            self._taken - self._seen >= CREDIT_ITEMS // 2
            or self._taken_bytes - self._seen_bytes >= CREDIT_BYTES // 2
        ):
            self._seen, self._seen_bytes = self._taken, self._taken_bytes
            self._call.grant(self._taken + CREDIT_ITEMS, self._taken_bytes + CREDIT_BYTES)

    async def __anext__(self):
        while not self._items:
            if self._closed:
                raise StopAsyncIteration
            await self._wait(self._takers)
        item, size, error = self._items.popleft()
        try:
            if error is not None:
                raise error
            item = self._validate(item)
        except Exception as refused:
            self._refuse(refused)
        else:
            self._count(size)
            return item
        # The cancellation arrives here, or in the task that waits for the one that took the item.
        await _turn()
        raise StopAsyncIteration


async def _turn():
    await asyncio.sleep(0)


async def _send_all(call, generator):
    """Sends every item, as fast as the receiver takes them. A cancellation during that wait is
    raised inside the generator, which may still send items."""
    emit = call.emit
    async for item in generator:
        wait = emit(item)
        while wait is not None:
            if call.over:
                await generator.aclose()
                return
            try:
                await (_turn() if wait is True else wait)
                wait = None
            except asyncio.CancelledError as error:
                try:
                    item = await generator.athrow(error)
                except StopAsyncIteration:
                    return
                wait = emit(item)


async def _drive(call, generator, inbox=None):
    if inbox is not None:
        inbox.task = asyncio.current_task()
    try:
        await _send_all(call, generator)
        call.end()
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        call.fail(error, RUN)
    finally:
        if inbox is not None:
            inbox.leave()


def stream(call, plan, args, kwargs):
    """The coroutine that drives a stream."""
    return _drive(call, plan.fn(*args, **(kwargs or {})))


def bidi(call, plan, args, kwargs):
    """The coroutine that drives a bidi call, and its inbox."""
    channel = plan.bind.__self__.channel
    arguments = getattr(channel.annotation, "__args__", ())
    inbox = Inbox(call, arguments[0] if arguments else object)
    given = dict(kwargs or {})
    if channel.kind == 0:  # positional only
        args = (*args, inbox)
    else:
        given[channel.name] = inbox
    return _drive(call, plan.fn(*args, **given), inbox), inbox


async def await_it(awaitable):
    """Awaits the result of a plain function that returned an awaitable."""
    return await awaitable


class Shutdown:
    """Ends the loop when every call has ended, or the grace is over."""

    TICK = 0.005

    def __init__(self, worker, loop, grace):
        self.worker, self.loop = worker, loop
        self.until = loop.time() + grace
        worker.cancel_all()
        self._look()

    def _look(self):
        if self.worker.active == 0 or self.loop.time() >= self.until:
            self.loop.stop()
        else:
            self.loop.call_later(self.TICK, self._look)
