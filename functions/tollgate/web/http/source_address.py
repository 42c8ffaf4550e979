"""The address that a request comes from, behind the proxies that the operator trusts."""

from collections.abc import Container, Sequence
from typing import Final

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from tollgate.core.networks import find_source, parse_networks
from tollgate.web.http.cors import WebLimits

# Headers that proxies add to requests; if one is present, the sender is not the caller.
_FORWARDED: Final = ("forwarded", "via", "x-forwarded-for", "x-real-ip")


class SourceAddress:
    """Replaces a trusted proxy's address in the scope with the address of the proxy's client.

    `X-Forwarded-For` is read only if the request's peer is a trusted proxy.
    """

    def __init__(self, app: ASGIApp, trusted: Sequence[str]) -> None:
        self._app = app
        self._trusted = parse_networks(",".join(trusted))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        peer = source_of(scope)
        if peer is not None:
            forwarded = [
                address
                for name, value in scope["headers"]
                if name == b"x-forwarded-for"
                for address in value.decode("latin-1").split(",")
            ]
            source = find_source(peer, forwarded, self._trusted)
            scope = {**scope, "client": None if source is None else (source, 0)}
        await self._app(scope, receive, send)


def source_of(scope: Scope) -> str | None:
    """Return the address that a request comes from; None if it cannot be known."""
    client = scope.get("client")
    return str(client[0]) if client else None


def source_address(limits: WebLimits) -> list[Middleware]:
    """Return the middleware that reads forwarded addresses, if the operator trusts any proxy."""
    if not limits.trusted_proxies:
        return []
    return [Middleware(SourceAddress, trusted=limits.trusted_proxies)]


def is_forwarded(headers: Container[str]) -> bool:
    """Return whether a request declares that a proxy has forwarded it."""
    return any(name in headers for name in _FORWARDED)
