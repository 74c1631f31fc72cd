"""Why a remote call failed.

    RemoteCallError             the function raised, or the server refused the call
      WorkerExited              the worker died during the call
      CallTimeout               no answer in time; also a TimeoutError
      MessageTooLarge           request or answer exceeds the other side's limit
      ResultUnavailable         the connection was lost, and so was the outcome
      RuntimeUnreachable        no connection; also a ConnectionError

    CallCancelled               the call was cancelled at the other end

`CallCancelled` is an `asyncio.CancelledError` and not a `RemoteCallError`: programs expect the
former, and `except Exception` must not swallow it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from agentix.runtime.shared.models import RemoteError

__all__ = [
    "CallCancelled",
    "CallTimeout",
    "MessageTooLarge",
    "RemoteCallError",
    "ResultUnavailable",
    "RuntimeUnreachable",
    "WorkerExited",
    "make_error",
]


def _field(error: RemoteError | dict[str, Any], name: str) -> Any:
    return error.get(name) if isinstance(error, dict) else getattr(error, name, None)


class _Failed:
    """Common to both trees: the function's name, and the error as received."""

    display_name: str
    _error: RemoteError | dict[str, Any]

    def _describe(self, display_name: str, error: RemoteError | dict[str, Any]) -> str:
        self.display_name = display_name
        self._error = error
        return f"{display_name}: {_field(error, 'type')}: {_field(error, 'message')}"

    @property
    def error(self) -> RemoteError:
        """Type, message and traceback of the failure at the other end."""
        if isinstance(self._error, dict):
            # Models need pydantic, which is slow to import: import it only here.
            from agentix.runtime.shared.models import RemoteError

            self._error = RemoteError(
                type=str(self._error.get("type", "Unknown")),
                message=str(self._error.get("message", "")),
                traceback=self._error.get("traceback"),
                cancelled=bool(self._error.get("cancelled", False)),
            )
        return self._error

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.display_name, self.error)


class RemoteCallError(_Failed, RuntimeError):
    """A remote call failed: `.display_name` is the function, `.error` what happened."""

    def __init__(self, display_name: str, error: RemoteError | dict[str, Any]) -> None:
        super().__init__(self._describe(display_name, error))


class WorkerExited(RemoteCallError):
    """The worker died during the call."""

    returncode: int | None
    """Exit code; negative: the signal that killed it. None where the server did not say."""

    def __init__(self, display_name: str, error: RemoteError | dict[str, Any]) -> None:
        super().__init__(display_name, error)
        self.returncode = cast("int | None", _field(error, "returncode"))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.display_name, self._error)


class CallTimeout(RemoteCallError, TimeoutError):
    """The call's deadline has passed. The function was cancelled."""


class MessageTooLarge(RemoteCallError):
    """Request or answer is larger than the other side accepts."""


class ResultUnavailable(RemoteCallError):
    """The connection was lost and could not be resumed: the call may or may not have run."""


class RuntimeUnreachable(RemoteCallError, ConnectionError):
    """There is no connection to the server, and the call was not sent or was given up."""


class CallCancelled(_Failed, asyncio.CancelledError):
    """The call was cancelled at the other end, not by the task that awaits it."""

    def __init__(self, display_name: str, error: RemoteError | dict[str, Any]) -> None:
        self._describe(display_name, error)
        super().__init__(_field(error, "message"))


_CLASSES: dict[str, type[RemoteCallError]] = {
    cls.__name__: cls
    for cls in (WorkerExited, CallTimeout, MessageTooLarge, ResultUnavailable, RuntimeUnreachable)
}


def make_error(display_name: str, error: Any) -> BaseException:
    """The exception for a received error map."""
    if not isinstance(error, dict):
        error = {"type": "Unknown", "message": ""}
    if error.get("cancelled"):
        return CallCancelled(display_name, error)
    return _CLASSES.get(error.get("type", ""), RemoteCallError)(display_name, error)
