"""Identifiers."""

from typing import NewType

__all__ = ["CallId"]

CallId = NewType("CallId", str)
