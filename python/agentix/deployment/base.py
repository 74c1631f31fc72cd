"""The protocol of deployments: objects that create sandboxes with a runtime in them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import NewType, Protocol, runtime_checkable

from pydantic import BaseModel

__all__ = ["Deployment", "Sandbox", "SandboxConfig", "SandboxId", "SandboxInfo", "session"]

SandboxId = NewType("SandboxId", str)


class SandboxConfig(BaseModel):
    """A sandbox to create: the task's image, and the image that holds the bundle."""

    image: str
    runtime_image: str
    env: dict[str, str] | None = None


class SandboxInfo(BaseModel):
    """Status of a sandbox."""

    sandbox_id: SandboxId
    runtime_url: str
    status: str = "running"


@dataclass
class Sandbox:
    """A sandbox whose runtime answers at `runtime_url`."""

    sandbox_id: SandboxId
    runtime_url: str
    status: str


@runtime_checkable
class Deployment(Protocol):
    """Creates sandboxes and removes them. The environment configures it: no arguments."""

    async def create(self, config: SandboxConfig) -> Sandbox:
        """Creates a sandbox; it is ready for calls."""
        ...

    async def delete(self, sandbox_id: SandboxId) -> None:
        """Removes it."""
        ...

    async def get(self, sandbox_id: SandboxId) -> SandboxInfo:
        """Its status."""
        ...


@contextlib.asynccontextmanager
async def session(deployment: Deployment, config: SandboxConfig) -> AsyncIterator[Sandbox]:
    """A sandbox for the length of a block.

    async with session(deployment, SandboxConfig(image=..., runtime_image=...)) as sandbox:
        async with RuntimeClient(sandbox.runtime_url) as client: ...
    """
    sandbox = await deployment.create(config)
    try:
        yield sandbox
    finally:
        await deployment.delete(sandbox.sandbox_id)
