"""Agentix: call functions in a sandbox as if they were local.

Names are imported when they are first used: a worker that starts must not pay for the client.
"""

import importlib
import os
import sys

__version__ = "0.1.1"

# Name -> the module that defines it.
_HOMES = {
    "Channel": "agentix.runtime.shared.rpc",
}

__all__ = ["Channel", "__version__"]

# Other distributions install agentix/<name>/ beside us; the same as pkgutil.extend_path, without
# the import of pkgutil.
for _entry in sys.path:
    _portion = os.path.join(_entry, "agentix")
    if _entry and _portion not in __path__ and os.path.isdir(_portion):
        __path__.append(_portion)


def __getattr__(name):
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'agentix' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(globals()) | set(_HOMES))
