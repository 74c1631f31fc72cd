"""Messages of the remote call as pydantic models."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from agentix.runtime.shared.idents import CallId

__all__ = ["CallShape", "HealthResponse", "RemoteError", "RemoteRequest", "RemoteResponse"]

CallShape = Literal["unary", "stream", "bidi"]


class HealthResponse(BaseModel):
    """The answer of GET /health."""

    status: str = "ok"
    version: str


class RemoteError(BaseModel):
    """Why a call failed."""

    type: str
    message: str
    traceback: str | None = None
    cancelled: bool = False
    returncode: int | None = None


class RemoteRequest(BaseModel):
    """A call."""

    callable_payload: bytes
    display_name: str = Field(min_length=1)
    shape: CallShape
    args: list[Any] = Field(default_factory=list)
    kwargs: dict[str, Any] = Field(default_factory=dict)
    call_id: CallId | None = None


class RemoteResponse(BaseModel):
    """The answer to a unary call."""

    ok: bool
    value: Any = None
    error: RemoteError | None = None
