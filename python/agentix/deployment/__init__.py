"""Where sandboxes come from: the protocol of deployments, and the registry of those installed."""

import pkgutil

from agentix.deployment._plugin import (
    PluginConflictError,
    Registry,
    deployments,
    load_deployment,
    register_deployment,
)
from agentix.deployment.base import (
    Deployment,
    Sandbox,
    SandboxConfig,
    SandboxId,
    SandboxInfo,
    session,
)

# Backends are installed as agentix/deployment/<name>.py by other distributions.
__path__ = pkgutil.extend_path(__path__, __name__)

__all__ = [
    "Deployment",
    "PluginConflictError",
    "Registry",
    "Sandbox",
    "SandboxConfig",
    "SandboxId",
    "SandboxInfo",
    "deployments",
    "load_deployment",
    "register_deployment",
    "session",
]
