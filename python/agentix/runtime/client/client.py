"""RuntimeClient: calls functions in a runtime as if they were local."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from types import FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, overload

from agentix.runtime.client._address import Address
from agentix.runtime.client._greeting import Door, http_get
from agentix.runtime.client._link import CALL_ID, Link, Reconnect
from agentix.runtime.client._plan import _RECIPES, Recipe, recipe_for
from agentix.runtime.client.errors import make_error
from agentix.runtime.shared.calls import Bidi, Stream, Unary

if TYPE_CHECKING:
    import ssl

    from agentix._client import Call, Session
    from agentix.runtime.shared.models import HealthResponse
    from agentix.runtime.shared.rpc import Channel

P = ParamSpec("P")
R = TypeVar("R")
In = TypeVar("In")

# The default for the largest accepted message: the limit of our server.
MAX_MESSAGE = 256 << 20

# A handshake that takes longer has failed; calls wait for it.
CONNECT_MAX_S = 30.0


class Caller:
    """Something that has `remote()`: a client, or a view of one with other options."""

    _session: Session
    _timeout_s: float

    @overload
    def remote(  # type: ignore[overload-overlap]
        self,
        fn: Callable[Concatenate[Channel[In], P], AsyncIterator[R]],
        /,
        *args: Any,
        **kwargs: Any,
    ) -> Bidi[In, R]: ...
    @overload
    def remote(  # type: ignore[overload-overlap]
        self, fn: Callable[P, AsyncIterator[R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Stream[R]: ...
    @overload
    def remote(
        self, fn: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Unary[R]: ...
    @overload
    def remote(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Unary[R]: ...

    def remote(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Prepares a call of `fn` in the runtime; it begins when it is awaited or iterated.

            value = await client.remote(add, 1, b=2)
            async for item in client.remote(count, 10): ...

        An async generator gives a `Stream`, one with a `Channel` parameter a `Bidi`, all else a
        `Unary`. Raises at once what `inspect.signature` raises and, for bidi, what is wrong with
        the arguments.
        """
        recipe = _RECIPES.get(fn) if type(fn) is FunctionType else None
        if recipe is None:
            recipe = recipe_for(fn)
        if recipe.kind == "unary":
            return Unary(self._session.call(recipe.plan, args, kwargs, self._timeout_s))
        if recipe.kind == "stream":
            return Stream(self._session.call(recipe.plan, args, kwargs, self._timeout_s))
        channel, named = recipe.bind(args, kwargs)
        call = self._session.call(recipe.plan, (), named, self._timeout_s)
        return Bidi(channel, _talk(call, recipe, channel))


class RuntimeClient(Caller):
    """A client of one runtime. It connects at the first call.

        async with RuntimeClient("http://127.0.0.1:8000") as client:
            print(await client.remote(math.factorial, 20))

    `base_url` is http://, https:// or unix:///path. `timeout` is for `health()` and, up to 30 s,
    for connecting; `call_timeout` is for each call (None: no limit), and `options(timeout=...)` for
    some. `reconnect` says how a lost connection is taken up again (False: not at all, open calls
    fail).
    """

    def __init__(
        self,
        base_url: str,
        timeout: float = 300,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        reconnect: Reconnect | bool = True,
        call_timeout: float | None = None,
        max_message: int = MAX_MESSAGE,
        ssl: ssl.SSLContext | None = None,
    ) -> None:
        self._base_url = base_url
        self._timeout = timeout
        own = dict(headers or {})
        if token is not None:
            own["Authorization"] = f"Bearer {token}"
        self._door = Door(Address.parse(base_url), own, ssl)
        policy = (Reconnect() if reconnect else None) if isinstance(reconnect, bool) else reconnect
        self._link = Link(self._door, policy, min(timeout, CONNECT_MAX_S), max_message)
        self._session = self._link.session
        self._timeout_s = _seconds(call_timeout)

    def options(self, *, timeout: float | None = None) -> Caller:
        """The same client with other options for the calls that are made through it.

        await client.options(timeout=5).remote(slow)
        """
        view = Caller()
        view._session = self._session
        view._timeout_s = _seconds(timeout)
        return view

    @contextlib.contextmanager
    def call_context(self, *, call_id: str | None = None) -> Iterator[None]:
        """Calls that begin inside have this id; one at a time."""
        self._session.context_ids = True
        token = CALL_ID.set(call_id)
        try:
            yield
        finally:
            CALL_ID.reset(token)

    async def health(self) -> HealthResponse:
        """The server's health report; RuntimeUnreachable if it does not answer."""
        from agentix.runtime.shared.models import HealthResponse

        try:
            async with asyncio.timeout(self._timeout):
                body = await http_get(self._door, self._door.address.path + "/health")
            return HealthResponse.model_validate(json.loads(body))
        except (OSError, ValueError) as e:
            message = f"{self._door.address}/health: {str(e) or type(e).__name__}"
            error = {"type": "RuntimeUnreachable", "message": message}
            raise make_error("health", error) from e

    async def close(self) -> None:
        """Ends the connection. Running calls fail with RuntimeUnreachable."""
        await self._link.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    # Names of 0.1.5 that tools use.

    @property
    def _pending(self) -> dict[str, Call]:
        return self._session.calls()

    @property
    def _sio(self) -> Session | None:
        return self._session if self._session.state == "open" else None

    async def _ensure_sio(self) -> Session:
        return await self._link.ensure()


def _seconds(timeout: float | None) -> float:
    if timeout is None:
        return 0.0
    if timeout <= 0:
        raise ValueError(f"timeout must be more than 0, not {timeout!r}")
    return float(timeout)


async def _pump(call: Call, recipe: Recipe, channel: Channel[Any]) -> None:
    """Sends the items that the user puts into the channel, as fast as the function takes them."""
    assert recipe.push_item is not None
    try:
        await call.credit()
        async for item in channel:
            if not call.push(recipe.push_item(item)):
                await call.credit()
        call.end_input()
    except Exception as e:
        call.fail(e)  # an item that cannot be sent must not be lost silently


async def _talk(call: Call, recipe: Recipe, channel: Channel[Any]) -> AsyncGenerator[Any, None]:
    """The items of a bidi call, while its input is sent."""
    call.start()
    pump = asyncio.get_running_loop().create_task(_pump(call, recipe, channel))
    try:
        async for item in call:
            yield item
    finally:
        pump.cancel()
        call.close()
