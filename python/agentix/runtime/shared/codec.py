"""msgpack for remote calls: `pack` and `unpack`.

>>> unpack(pack({"x": [1, 2.5, b"raw"]}))
{'x': [1, 2.5, b'raw']}
"""

from agentix._codec import ExtType, pack, unpack

__all__ = ["ExtType", "pack", "unpack"]
