"""The address of a runtime: parses its URL."""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy that forwards our bytes after CONNECT."""

    host: str
    port: int
    authorization: str | None


@dataclass(frozen=True, slots=True)
class Address:
    """A server: TCP with or without TLS, or a Unix socket."""

    host: str
    port: int
    tls: bool
    unix_path: str | None
    path: str  # of the URL, kept for /health, as 0.1.5 does
    query: str  # kept for /socket.io/

    @classmethod
    def parse(cls, url: str) -> Address:
        """Parses http://, https:// or unix:///path; ValueError for an invalid URL."""
        parts = urlsplit(url)
        if parts.scheme == "unix":
            path = unquote(parts.netloc + parts.path)
            if not path.startswith("/"):
                raise ValueError(f"no absolute path in {url!r}: unix:///path/of.sock")
            return cls("localhost", 0, False, path, "", parts.query)
        if parts.scheme not in ("http", "https"):
            raise ValueError(f"{url!r} begins with none of http://, https://, unix://")
        if not parts.hostname:
            raise ValueError(f"no host in {url!r}")
        tls = parts.scheme == "https"
        port = parts.port or (443 if tls else 80)
        return cls(parts.hostname, port, tls, None, parts.path.rstrip("/"), parts.query)

    @property
    def authority(self) -> str:
        """For the Host header and for CONNECT."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = 443 if self.tls else 80
        return host if self.unix_path or self.port == default else f"{host}:{self.port}"

    def __str__(self) -> str:
        if self.unix_path:
            return f"unix://{self.unix_path}"
        return f"{'https' if self.tls else 'http'}://{self.authority}"


def proxy_for(address: Address) -> Proxy | None:
    """The proxy for this address by HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY."""
    names = ("https_proxy", "all_proxy") if address.tls else ("http_proxy", "all_proxy")
    found = [os.environ.get(n) or os.environ.get(n.upper()) for n in names]
    url = next((u for u in found if u), None)
    if address.unix_path or not url:
        return None
    # Slow to import, and only needed where a proxy is set at all.
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

    if proxy_bypass_environment(f"{address.host}:{address.port}"):
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError(f"proxy {_without_password(parts)!r} is not an http:// address")
    return Proxy(parts.hostname, parts.port or 80, _basic(parts))


def _without_password(parts: SplitResult) -> str:
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _basic(parts: SplitResult) -> str | None:
    if parts.username is None:
        return None
    from base64 import b64encode

    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return "Basic " + b64encode(pair.encode()).decode()
