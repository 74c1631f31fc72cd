"""Makes a callable ready to be called: loads it, reads its signature, decides how each argument is
checked and how its result is dumped.

pydantic is imported only if an annotation needs more than an exact builtin type, because its
import costs more than most calls.
"""

import sys

from agentix._worker import Plan
from agentix.runtime.shared._signature import (
    ASYNC_GENERATOR,
    COROUTINE,
    KEYWORD_ONLY,
    POSITIONAL_ONLY,
    VAR_KEYWORD,
    VAR_POSITIONAL,
    Empty,
    flags,
    signature,
)

# How a callable is run; the numbers are those of `enum plan_mode` in py_worker.h.
THREAD, RUN_COROUTINE, STREAM, BIDI = range(4)

_NONE = type(None)
_SCALARS = (int, str, float, bool, bytes, _NONE)
_EXACT = (*_SCALARS, list, dict)
# Defaults of these types could be values from a caller, so they are validated like those.
_RAW = (int, str, float, bool, bytes, list, dict, tuple, set)


def _from_typing(name):
    """A name of typing, if typing is imported; otherwise no annotation can use it."""
    return getattr(sys.modules.get("typing"), name, Empty)


def _is_any(annotation):
    return annotation is Empty or annotation is object or annotation is _from_typing("Any")


def _members(annotation):
    """The members of a union, or a tuple of the annotation alone."""
    is_union = type(annotation) is type(int | str)
    if is_union or getattr(annotation, "__origin__", None) is _from_typing("Union"):
        return annotation.__args__
    return (annotation,)


def _check(annotation):
    """The exact types of values that need no validation: None (any), a type, or types; an empty
    tuple if pydantic must decide."""
    if _is_any(annotation):
        return None
    members = tuple(_NONE if member is None else member for member in _members(annotation))
    if not all(isinstance(member, type) and member in _EXACT for member in members):
        return ()
    return members[0] if len(members) == 1 else members


def _is_plain(annotation):
    """Is a value of this type packed unchanged, without a dump?"""
    if _is_any(annotation) or annotation is None or annotation in (*_EXACT, tuple):
        return True
    members = _members(annotation)
    if len(members) > 1:
        return all(map(_is_plain, members))
    if getattr(annotation, "__origin__", None) in (list, dict, tuple):
        return all(arg is Ellipsis or _is_plain(arg) for arg in annotation.__args__)
    return False


def _gives_types_back(annotation):
    """Can a receiver that has the annotation convert text back to the returned value?"""
    return not _is_any(annotation) and annotation not in (list, dict, tuple)


def _adapter(annotation):
    from pydantic import TypeAdapter

    return TypeAdapter(annotation)


class Validator:
    """Validates values against one annotation, as pydantic does."""

    def __init__(self, annotation):
        self.annotation, self.check, self._validate = annotation, _check(annotation), None

    def __call__(self, value):
        check = self.check
        if check is None or type(value) is check:
            return value
        if self.annotation is tuple and type(value) is list:
            return tuple(value)
        if self._validate is None:
            self._validate = _adapter(self.annotation).validator.validate_python
        return self._validate(value)


class Binder:
    """Binds and validates the arguments of one callable."""

    def __init__(self, fn, found):
        self.fn = fn
        self.channel = next((p for p in found.parameters if _is_channel(p.annotation)), None)
        self.parameters = [p for p in found.parameters if p is not self.channel]
        self.validators = [Validator(p.annotation) for p in self.parameters]
        self._signature = None

    def validate(self, index, value):
        return self.validators[index](value)

    def _bound(self, args, kwargs):
        """name -> value, as Python itself would bind them."""
        import inspect

        if self._signature is None:
            kinds = [
                inspect.Parameter(
                    p.name,
                    inspect._ParameterKind(p.kind),
                    default=inspect.Parameter.empty if p.default is Empty else p.default,
                )
                for p in self.parameters
            ]
            self._signature = inspect.Signature(kinds, __validate_parameters__=False)
        return self._signature.bind(*args, **kwargs).arguments

    def needs_fill(self, parameter, check):
        """Must the default be validated when the argument is left out?"""
        default = parameter.default
        if default is Empty or default is None or check is None or type(default) not in _RAW:
            return False
        return not (type(default) is check or (check is float and type(default) is int))

    def bind(self, args, kwargs):
        """(args, kwargs), validated, to call the function with."""
        given = self._bound(args, kwargs)
        positional, named = [], {}
        by_name = self.channel is not None
        for parameter, validator in zip(self.parameters, self.validators, strict=True):
            name, kind = parameter.name, parameter.kind
            if name not in given:
                if self.needs_fill(parameter, validator.check):
                    value = validator(parameter.default)
                elif kind == POSITIONAL_ONLY and by_name:
                    value = parameter.default
                else:
                    by_name = True
                    continue
            elif kind == VAR_POSITIONAL:
                positional.extend(map(validator, given[name]))
                continue
            elif kind == VAR_KEYWORD:
                named.update((key, validator(value)) for key, value in given[name].items())
                continue
            else:
                value = validator(given[name])
            if kind == POSITIONAL_ONLY or not (by_name or kind == KEYWORD_ONLY):
                positional.append(value)
            else:
                named[name] = value
        return tuple(positional), named


def _is_channel(annotation):
    if "agentix.runtime.shared.rpc" not in sys.modules:
        return False  # without that module no annotation can be a Channel
    from agentix.runtime.shared.rpc import is_channel_annotation

    return is_channel_annotation(annotation)


def _mode(fn, binder):
    code = flags(fn)
    if code & ASYNC_GENERATOR:
        return BIDI if binder.channel else STREAM
    return RUN_COROUTINE if code & COROUTINE else THREAD


def _result_annotation(fn, found, mode):
    """The annotation of one result, or of one item."""
    if isinstance(fn, type):
        return Empty  # the annotation of __init__ is None, but calling a class returns an instance
    if mode in (STREAM, BIDI):
        arguments = getattr(found.returns, "__args__", ())
        return arguments[0] if arguments else Empty
    return found.returns


def _dump(annotation):
    """The function that converts a result for packing; None if it is packed unchanged."""
    if _is_plain(annotation):
        return None
    to_python = _adapter(annotation).serializer.to_python
    return lambda value: to_python(value, warnings=False)


def plan(fn):
    """The plan of a callable."""
    found = signature(fn)
    binder = Binder(fn, found)
    mode = _mode(fn, binder)
    parameters = binder.parameters
    checks = tuple(v.check for v in binder.validators)
    result = _result_annotation(fn, found, mode)
    required = fills = 0
    for i, parameter in enumerate(parameters[:64]):
        if parameter.default is Empty:
            required |= 1 << i
        elif binder.needs_fill(parameter, checks[i]):
            fills |= 1 << i
    kinds = [p.kind for p in parameters]
    return Plan(
        fn=fn,
        mode=mode,
        simple=mode != BIDI and VAR_POSITIONAL not in kinds and VAR_KEYWORD not in kinds,
        annotated=_gives_types_back(result),
        n_posonly=kinds.count(POSITIONAL_ONLY),
        n_pos=sum(kind < VAR_POSITIONAL for kind in kinds),
        required=required,
        fills=fills,
        names=tuple(p.name for p in parameters),
        checks=checks,
        validate=binder.validate,
        bind=binder.bind,
        dump=_dump(result),
    )


def _import_target(target):
    module, separator, qualname = target.partition("::")
    if not separator or not module or not qualname:
        raise ValueError(f"target {target!r} is not of the form module::name")
    __import__(module)
    found = sys.modules[module]
    for name in qualname.split("."):
        found = getattr(found, name)
    return found


def _is_reference(fn):
    """Does its pickle hold only its name? Then loading it again returns the same object."""
    function, builtin = type(_is_reference), type(len)
    if type(fn) is builtin:
        return not hasattr(fn, "__self__") or type(fn.__self__) is type(sys)
    return type(fn) is function or isinstance(fn, type)


def prepare(key, by_target):
    """(plan, may it be kept) for a pickle, or for the text of a target."""
    if by_target:
        fn, keep = _import_target(key), True
    else:
        from _pickle import loads

        fn = loads(key)
        keep = _is_reference(fn)
    if not callable(fn):
        raise TypeError(f"serialized remote value is not callable (got {type(fn).__name__})")
    return plan(fn), keep
