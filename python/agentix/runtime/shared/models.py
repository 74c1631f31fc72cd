"""What travels beside values, as pydantic models: requests, errors, health."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

__all__ = ["CallShape", "HealthResponse", "RemoteError", "RemoteRequest", "RemoteResponse"]

CallShape = Literal["unary", "stream", "bidi"]


class HealthResponse(BaseModel):
    """What GET /health says."""

    status: str = "ok"
    version: str


class RemoteError(BaseModel):
    """Why a call failed, as the other end tells it."""

    type: str
    message: str
    traceback: str | None = None
    cancelled: bool = False


class RemoteRequest(BaseModel):
    """One call."""

    callable_payload: bytes
    display_name: str = Field(min_length=1)
    shape: CallShape
    call_id: str
    args: list[Any] = Field(default_factory=list)
    kwargs: dict[str, Any] = Field(default_factory=dict)


class RemoteResponse(BaseModel):
    """The outcome of a unary call."""

    ok: bool
    value: Any = None
    error: RemoteError | None = None
