"""How a failure is reported to the caller."""

# Where it happened; the numbers are those of `enum phase` in py_worker.h.
LOAD, BIND, RUN, RESULT, ITEM, INPUT = range(6)

_FAILED = {
    RESULT: "failed to serialize return value: ",
    ITEM: "failed to serialize item: ",
}


def _text(value):
    """Text that can always be encoded, whatever the exception's own text is."""
    try:
        text = str(value)
    except Exception as error:
        text = f"<{type(value).__name__} whose text raised {type(error).__name__}>"
    return text.encode("utf-8", "backslashreplace").decode()


def _traceback(error):
    import traceback

    try:
        return _text("".join(traceback.format_exception(error)))
    except Exception:
        return None


def describe(error, phase):
    """(type, message, traceback or None) of an exception."""
    name = type(error).__name__
    if phase in _FAILED:
        return "SerializationError", _FAILED[phase] + _text(error), None
    if phase == BIND and name == "ValidationError":
        return name, _text(error), None
    return name, _text(error), _traceback(error)
