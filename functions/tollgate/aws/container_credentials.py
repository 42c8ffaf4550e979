"""Temporary AWS credentials, fetched from the credentials endpoint of Lambda, ECS or EKS.

Lambda provides this endpoint, instead of environment variables, to functions that are restored from
a snapshot ("Activating and managing Lambda SnapStart", 2026-11-21). Amazon ECS and EKS provide it
to every container ("Container credential provider", AWS SDKs and Tools Reference Guide,
2026-11-21).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from tollgate.aws.sigv4 import Credentials
from tollgate.core.clock import Clock
from tollgate.http1.errors import HttpError
from tollgate.http1.exchange import send_alone
from tollgate.http1.request import USUAL_HEADERS, Request

# Credentials are renewed when they expire within this time, which is longer than any request: a
# signature made at the end of a request must still be accepted.
FRESH_FOR_S: Final = 20 * 60
# Minimum interval between fetches while the current credentials are valid: the endpoint may be
# failing, or may have no newer credentials yet.
_FETCH_AGAIN_S: Final = 10.0
_TIMEOUT_S: Final = 2.0
_REPLY_BYTES_MAX: Final = 64 * 1024
_LOGGER: Final = logging.getLogger("tollgate.credentials")


class CredentialsUnavailable(Exception):
    """Raised if the endpoint returned no usable credentials."""


class Lease(Struct, frozen=True):
    """Credentials and the Unix second at which they expire."""

    credentials: Credentials
    ends_s: float


class _Reply(Struct, rename="pascal"):
    access_key_id: Annotated[str, Meta(min_length=1)]
    secret_access_key: str
    token: str
    expiration: Annotated[datetime, Meta(tz=True)]


class CredentialsEndpoint:
    """A client for the credentials endpoint at `url`.

    The authorization token is `token`, or is read from `token_file` for every request, because the
    platform replaces that file.
    """

    def __init__(self, url: str, *, token: str | None = None, token_file: Path | None = None):
        self._url = url
        self._token = token
        self._token_file = token_file

    async def fetch(self) -> Lease:
        """Return the endpoint's credentials; raise CredentialsUnavailable if none are usable."""
        try:
            token = self._token_file.read_text().strip() if self._token_file else self._token
            headers = {**USUAL_HEADERS, **({"authorization": token} if token else {})}
            request = Request(method="GET", url=self._url, headers=headers)
            async with send_alone(request, timeout_s=_TIMEOUT_S) as reply:
                status, body = reply.status, await reply.read_all(_REPLY_BYTES_MAX)
        except (HttpError, OSError) as failed:
            raise _unavailable(type(failed).__name__) from failed
        if status != 200:
            raise _unavailable(f"HTTP {status}")
        try:
            decoded = msgspec.json.decode(body, type=_Reply)
        except msgspec.MsgspecError:
            # Do not chain the cause: the decoding error may quote the reply, which contains
            # secrets.
            raise _unavailable("malformed reply") from None
        return Lease(
            Credentials(decoded.access_key_id, decoded.secret_access_key, decoded.token),
            decoded.expiration.timestamp(),
        )


class RotatingCredentials:
    """Credentials that are renewed between requests, so that signing never waits."""

    def __init__(self, fetch: Callable[[], Awaitable[Lease]], clock: Clock) -> None:
        self._fetch = fetch
        self._clock = clock
        self._lease: Lease | None = None
        self._fetch_again_s = 0.0
        self._renewing = asyncio.Lock()

    def current(self) -> Credentials | None:
        """Return the current credentials, or None if they are missing or expired."""
        if self._lease is None or self._lease.ends_s <= self._clock.now_s():
            return None
        return self._lease.credentials

    def forget(self) -> None:
        """Drop the credentials after a restore from a snapshot, because they belong to another
        environment.
        """
        self._lease = None
        self._fetch_again_s = 0.0

    async def renew(self) -> None:
        """Fetch new credentials if the current ones may expire during a request that starts now.

        A failure of the endpoint is logged, and the current credentials are used until they expire.
        """
        if not self._due():
            return
        async with self._renewing:
            if not self._due():
                return
            self._fetch_again_s = self._clock.monotonic_s() + _FETCH_AGAIN_S
            try:
                self._lease = await self._fetch()
            except CredentialsUnavailable as failure:
                _LOGGER.error("no new credentials", extra={"fields": {"failure": str(failure)}})

    def _due(self) -> bool:
        if self._lease is None:
            return True
        lasts = self._lease.ends_s > self._clock.now_s() + FRESH_FOR_S
        return not lasts and self._clock.monotonic_s() >= self._fetch_again_s


def _unavailable(reason: str) -> CredentialsUnavailable:
    return CredentialsUnavailable(f"credentials: {reason}")
