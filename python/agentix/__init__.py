"""Agentix: call functions in a sandbox as if they were local.

Names are imported on first use, so that a starting worker does not pay for the client.
"""

import importlib
import os
import sys

TYPE_CHECKING = False  # type checkers take it for true; typing itself is slow to import
if TYPE_CHECKING:
    from agentix.deployment._plugin import load_deployment, register_deployment
    from agentix.deployment.base import (
        Deployment,
        Sandbox,
        SandboxConfig,
        SandboxId,
        SandboxInfo,
        session,
    )
    from agentix.runtime.client.client import RuntimeClient
    from agentix.runtime.client.errors import RemoteCallError
    from agentix.runtime.shared.calls import Bidi, RemoteCall, Stream, Unary
    from agentix.runtime.shared.rpc import Channel

__version__ = "0.1.1"

# Name -> the module that defines it.
_HOMES = {
    "Bidi": "agentix.runtime.shared.calls",
    "Channel": "agentix.runtime.shared.rpc",
    "Deployment": "agentix.deployment.base",
    "RemoteCall": "agentix.runtime.shared.calls",
    "RemoteCallError": "agentix.runtime.client.errors",
    "RuntimeClient": "agentix.runtime.client.client",
    "Sandbox": "agentix.deployment.base",
    "SandboxConfig": "agentix.deployment.base",
    "SandboxId": "agentix.deployment.base",
    "SandboxInfo": "agentix.deployment.base",
    "Stream": "agentix.runtime.shared.calls",
    "Unary": "agentix.runtime.shared.calls",
    "load_deployment": "agentix.deployment._plugin",
    "register_deployment": "agentix.deployment._plugin",
    "session": "agentix.deployment.base",
}

__all__ = [
    "Bidi",
    "Channel",
    "Deployment",
    "RemoteCall",
    "RemoteCallError",
    "RuntimeClient",
    "Sandbox",
    "SandboxConfig",
    "SandboxId",
    "SandboxInfo",
    "Stream",
    "Unary",
    "__version__",
    "load_deployment",
    "register_deployment",
    "session",
]

# Other distributions install agentix/<name>/ beside us; the same as pkgutil.extend_path, without
# the import of pkgutil.
for _entry in sys.path:
    _portion = os.path.join(_entry, "agentix")
    if _entry and _portion not in __path__ and os.path.isdir(_portion):
        __path__.append(_portion)


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'agentix' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOMES))
