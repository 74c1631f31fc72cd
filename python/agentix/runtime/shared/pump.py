"""Moving items between tasks."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

__all__ = ["DEFAULT_BIDI_BUFFER", "cancel_if_running", "drain"]

# Items of a bidi call that may wait between two tasks: the window that a call begins with.
DEFAULT_BIDI_BUFFER = 64


async def drain(intake: asyncio.Queue[Any], user_q: asyncio.Queue[Any], sentinel: Any) -> None:
    """Moves items from one queue to another, in order, up to and including `sentinel`. A
    cancellation ends it without an exception."""
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            item = await intake.get()
            await user_q.put(item)
            if item is sentinel:
                return


def cancel_if_running(task: asyncio.Task[Any] | None) -> None:
    """Cancels a task that still runs."""
    if task is not None and not task.done():
        task.cancel()
