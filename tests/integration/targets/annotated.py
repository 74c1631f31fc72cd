"""Functions whose annotations need pydantic."""

from __future__ import annotations


class Thing:
    pass


def no_schema(x: Thing):
    return 1


def no_result_schema() -> Thing:
    return Thing()
