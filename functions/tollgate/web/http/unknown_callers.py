"""Limits the rate of refusals of callers without a valid key, by network address.

Callers with a valid key are never limited, because many of them may share an address.
"""

from collections import OrderedDict
from ipaddress import ip_address
from typing import Final

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from tollgate.core.clock import Clock
from tollgate.core.errors import AccessError, ErrorCode
from tollgate.web.http.cors import WebLimits
from tollgate.web.http.source_address import source_of

# Beyond this number, the address that was refused least recently is forgotten.
ADDRESSES_MAX: Final = 10_000
_MINUTE_S: Final = 60.0
# A caller with IPv6 usually has a whole network of this prefix.
_IPV6_PREFIX_BYTES: Final = 8
_SCOPE_KEY: Final = "tollgate.unknown_callers"


class AddressPace:
    """The token buckets of one process by address; each allows a number of refusals per minute."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._interval_s = _MINUTE_S / per_minute
        self._per_minute = per_minute
        self._clock = clock
        self._full_s: OrderedDict[bytes, float] = OrderedDict()

    def count(self, address: str) -> None:
        """Count a refusal; raise AccessError(rate_limit_exceeded) if the bucket is empty."""
        place = _place(address)
        now_s = self._clock.monotonic_s()
        full_s = max(self._full_s.get(place, now_s), now_s) + self._interval_s
        # Rounding may make a sum of intervals slightly longer than a minute.
        wait_s = full_s - now_s - _MINUTE_S
        if wait_s > self._interval_s / 2:
            raise AccessError(
                ErrorCode.RATE_LIMIT_EXCEEDED,
                f"Your address sent more than {self._per_minute} requests per minute without a "
                "valid API key.",
                retry_after_s=wait_s,
            )
        self._full_s[place] = full_s
        self._full_s.move_to_end(place)
        if len(self._full_s) > ADDRESSES_MAX:
            self._full_s.popitem(last=False)


class UnknownCallers:
    """Middleware that passes the limiter of this application to each request."""

    def __init__(self, app: ASGIApp, pace: AddressPace) -> None:
        self._app = app
        self._pace = pace

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[_SCOPE_KEY] = self._pace
        await self._app(scope, receive, send)


def unknown_callers(limits: WebLimits, clock: Clock) -> list[Middleware]:
    """Return the middleware that limits callers without a key, if the operator sets a limit."""
    if not limits.unknown_caller_rpm:
        return []
    return [Middleware(UnknownCallers, pace=AddressPace(limits.unknown_caller_rpm, clock))]


def pace_refusal(refused: AccessError, scope: Scope) -> None:
    """Raise AccessError(rate_limit_exceeded) if the caller's address had too many such refusals.

    Only refusals for lack of a valid key count, and only if the address is known.
    """
    pace: AddressPace | None = scope.get(_SCOPE_KEY)
    source = source_of(scope)
    if pace is not None and source is not None and refused.code is ErrorCode.INVALID_API_KEY:
        pace.count(source)


def _place(address: str) -> bytes:
    """Return an IPv4 address, or the network of an IPv6 address."""
    try:
        ip = ip_address(address)
    except ValueError:
        return address.encode()
    mapped = ip.ipv4_mapped if ip.version == 6 else None
    return (mapped or ip).packed[:_IPV6_PREFIX_BYTES]
