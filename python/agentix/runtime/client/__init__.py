"""The client of a runtime: RuntimeClient, and the errors that its calls end with."""

from agentix.runtime.client._link import Reconnect
from agentix.runtime.client.client import Caller, RuntimeClient
from agentix.runtime.client.errors import (
    CallCancelled,
    CallTimeout,
    MessageTooLarge,
    RemoteCallError,
    ResultUnavailable,
    RuntimeUnreachable,
    WorkerExited,
)
from agentix.runtime.client.references import reference

__all__ = [
    "CallCancelled",
    "CallTimeout",
    "Caller",
    "MessageTooLarge",
    "Reconnect",
    "RemoteCallError",
    "ResultUnavailable",
    "RuntimeClient",
    "RuntimeUnreachable",
    "WorkerExited",
    "reference",
]
