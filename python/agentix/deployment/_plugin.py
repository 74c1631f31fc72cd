"""Deployments by name: registered in this process, or from installed distributions."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

__all__ = [
    "PluginConflictError",
    "Registry",
    "deployments",
    "load_deployment",
    "register_deployment",
]


class PluginConflictError(RuntimeError):
    """Two distributions offer the same name."""


def _origin(point: EntryPoint) -> str:
    dist = point.dist
    return f"{dist.name}@{dist.version}" if dist is not None else point.value


class Registry:
    """Plugins of one entry-point group. They are looked up once, and imported when requested."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._registered: dict[str, Any] = {}
        self._loaded: dict[str, Any] = {}
        self._points: dict[str, list[EntryPoint]] | None = None
        self._errors: dict[str, BaseException] = {}

    @property
    def group(self) -> str:
        """The entry-point group."""
        return self._group

    def register(self, name: str, plugin: Any) -> None:
        """Registers it in this process; takes precedence over installed plugins."""
        self._registered[name] = plugin

    def get(self, name: str) -> Any:
        """The plugin; KeyError: none; its import's error; PluginConflictError."""
        if name in self._registered:
            return self._registered[name]
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def all(self) -> dict[str, Any]:
        """All plugins that can be imported; `errors()` has the errors of the others."""
        found = {}
        for name in self._names():
            try:
                found[name] = self.get(name)
            except Exception as e:
                self._errors[name] = e
        return found

    def sources(self) -> dict[str, str]:
        """Name -> distribution@version that offers it, or where it was registered."""
        found = {n: ", ".join(_origin(p) for p in points) for n, points in self._find().items()}
        return {**found, **dict.fromkeys(self._registered, "registered in this process")}

    def errors(self) -> dict[str, BaseException]:
        """Name -> the error of its import in `all()` or `get()`."""
        return dict(self._errors)

    def reset(self) -> None:
        """Clears the registry; installed plugins are looked up again."""
        self._registered.clear()
        self._loaded.clear()
        self._errors.clear()
        self._points = None

    def _walk_entry_points(self) -> Iterable[EntryPoint]:
        return entry_points(group=self._group)

    def _find(self) -> dict[str, list[EntryPoint]]:
        if self._points is None:
            self._points = {}
            for point in self._walk_entry_points():
                self._points.setdefault(point.name, []).append(point)
        return self._points

    def _names(self) -> list[str]:
        return sorted({*self._find(), *self._registered})

    def _load(self, name: str) -> Any:
        points = self._find().get(name, [])
        if not points:
            raise KeyError(
                f"no plugin {name!r} in group {self._group!r}; available: {self._names()}"
            )
        if len(points) > 1:
            origins = " and ".join(sorted(_origin(p) for p in points))
            raise PluginConflictError(f"plugin {name!r} in group {self._group!r}: {origins}")
        try:
            return points[0].load()
        except Exception as e:
            self._errors[name] = e
            raise


_DEPLOYMENTS = Registry("agentix.deployment")


def deployments() -> Registry:
    """The registry of deployments."""
    return _DEPLOYMENTS


def register_deployment(name: str, cls: type[Any]) -> None:
    """Registers a deployment in this process; it takes precedence over an installed one."""
    _DEPLOYMENTS.register(name, cls)


def load_deployment(name: str) -> Any:
    """The class of a deployment: `load_deployment("local")()`."""
    return _DEPLOYMENTS.get(name)
