"""How values without a msgpack type are encoded.

The packer calls these functions for each object that it cannot write, and writes the result
instead; it calls them again for objects inside the result. A receiver that knows the annotated type
converts text back.
"""

import sys

_TEXT = {
    ("uuid", "UUID"),
    ("decimal", "Decimal"),
    ("ipaddress", "IPv4Address"),
    ("ipaddress", "IPv6Address"),
    ("ipaddress", "IPv4Network"),
    ("ipaddress", "IPv6Network"),
}


def _cannot(value):
    return TypeError(f"cannot encode {type(value).__module__}.{type(value).__qualname__}")


def _loaded(module, name):
    """A type of a module if that is imported; otherwise (), which isinstance() accepts."""
    return getattr(sys.modules.get(module), name, ())


def _structure(value):
    """Models and dataclasses as maps, numpy's scalars as numbers: these need no annotation."""
    if isinstance(value, _loaded("pydantic", "BaseModel")):
        return value.model_dump()
    if hasattr(type(value), "__dataclass_fields__"):
        return {name: getattr(value, name) for name in type(value).__dataclass_fields__}
    if isinstance(value, _loaded("numpy", "generic")):
        plain = value.item()
        if type(plain) is not type(value):
            return plain
    raise _cannot(value)


def _timedelta(value):
    """ISO 8601, with days, seconds and microseconds: "P1DT3.000005S"."""
    sign = "-" if value.days < 0 else ""
    value = abs(value)
    fraction = f".{value.microseconds:06d}" if value.microseconds else ""
    return f"{sign}P{value.days}DT{value.seconds}{fraction}S"


def replace_plain(value):
    """For receivers that get exactly what was returned, or an error."""
    return _structure(value)


def replace(value):
    """For receivers that convert text back by annotation, and for those without annotations."""
    kind = type(value)
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, (int, complex)):  # an int that comes here is past 64 bits
        return str(value)
    if isinstance(value, _loaded("enum", "Enum")):
        return value.value
    if isinstance(value, _loaded("datetime", "timedelta")):
        return _timedelta(value)
    for name in ("datetime", "date", "time"):
        if isinstance(value, _loaded("datetime", name)):
            return value.isoformat()
    if isinstance(value, _loaded("pathlib", "PurePath")):
        return str(value)
    if any(isinstance(value, _loaded(*name)) for name in _TEXT):
        return str(value)
    if kind.__name__ in ("deque", "dict_keys", "dict_values") and hasattr(value, "__iter__"):
        return list(value)
    return _structure(value)
