"""Access tokens of Google Cloud.

google-auth is imported with the first token, so deployments without Google Cloud never import it.
Its calls block, so they run in a thread.
"""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import pydantic_core
from msgspec import Struct

from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, MissingCredentials, UpstreamError
from tollgate.core.secret import CredentialPlace, describe_remedy
from tollgate.http1.errors import HttpError, InvalidRequest
from tollgate.http1.exchange import send_alone
from tollgate.http1.request import USUAL_HEADERS, Method, Request
from tollgate.providers.ports.base import ProviderRow
from tollgate.providers.transports.authorization import (
    GOOGLE_FILE,
    Authorization,
    ProviderServices,
    no_credentials,
    required_credentials,
    secret_of,
)
from tollgate.providers.transports.google_credentials import (
    AwsRole,
    UnusableCredentials,
    load_google_credentials,
)
from tollgate.stores.ports.base import SecretStore

if TYPE_CHECKING:
    from google.auth.credentials import Credentials

# A token is valid for an hour. It is renewed 5 minutes early, so that it is still valid on arrival.
RENEWED_BEFORE_END_S: Final = 300.0
_TIMEOUT_S: Final = 10.0
_REPLY_BYTES_MAX: Final = 64 * 1024


class GoogleToken:
    """The token of one row, which all requests share until shortly before its expiry.

    The row's secret is JSON from Google Cloud: a service account's key, or the configuration of a
    federation. A row without a secret reads `file`, the credentials of the environment.
    """

    def __init__(
        self,
        row: ProviderRow,
        secrets: SecretStore,
        clock: Clock,
        *,
        file: Path | None,
        role: AwsRole,
    ) -> None:
        self._row = row
        self._secrets = secrets
        self._clock = clock
        self._file = file
        self._role = role
        self._refreshing = asyncio.Lock()
        self._account: str | None = None
        self._credentials: Credentials | None = None
        self._token = ""
        self._ends_at_s = 0.0

    async def authorize(
        self, url: str, headers: Mapping[str, str], body: bytes, *, method: Method = "POST"
    ) -> Mapping[str, str]:
        account = await secret_of(self._row, self._secrets)
        async with self._refreshing:
            if account != self._account:
                self._account, self._credentials, self._token = account, None, ""
            if not self._token or self._clock.now_s() > self._ends_at_s - RENEWED_BEFORE_END_S:
                self._token, self._ends_at_s = await asyncio.to_thread(self._refreshed)
            return {**headers, "authorization": f"Bearer {self._token}"}

    def _refreshed(self) -> tuple[str, float]:
        """Return a new token, and its expiry in Unix seconds."""
        # This import takes long; it runs with the first token.
        from google.auth import exceptions

        try:
            if self._credentials is None:
                self._credentials = load_google_credentials(
                    self._read(), self._role, is_secret=self._account is not None
                )
            self._credentials.refresh(_over_http)  # type: ignore[no-untyped-call]
        except UnusableCredentials as unusable:
            what = f"cannot use {self._where()}: {unusable}"
            raise no_credentials(self._row, what, self._place()) from unusable
        except (exceptions.GoogleAuthError, ValueError) as failed:
            if isinstance(failed, exceptions.GoogleAuthError) and failed.retryable:
                raise UpstreamError(
                    ErrorCode.PROVIDER_UNAVAILABLE,
                    f"The token endpoint of the provider {self._row.slug} does not answer.",
                ) from failed
            if isinstance(failed, exceptions.RefreshError):
                raise UpstreamError(
                    ErrorCode.PROVIDER_AUTH,
                    f"The provider {self._row.slug} was refused an access token:"
                    f" check {self._where()}.",
                ) from failed
            raise self._no_token() from failed
        token, ends = self._credentials.token, self._credentials.expiry
        if not isinstance(token, str) or not isinstance(ends, datetime):
            raise self._no_token()
        # google-auth's expiry is in UTC, but without a time zone.
        return token, ends.replace(tzinfo=UTC).timestamp()

    def _read(self) -> object:
        """Return the JSON in the row's secret or in the environment's file."""
        if self._account is not None:
            return pydantic_core.from_json(self._account)
        try:
            content = self._file.read_bytes() if self._file else None
        except OSError:
            content = None
        if content is None:
            raise no_credentials(
                self._row,
                f"has no Google credentials: {describe_remedy((GOOGLE_FILE,))}"
                " to a readable file, or give the provider's row a key",
                GOOGLE_FILE,
            )
        return pydantic_core.from_json(content)

    def _no_token(self) -> MissingCredentials:
        what = f"got no access token: check {self._where()}"
        return no_credentials(self._row, what, self._place())

    def _place(self) -> CredentialPlace:
        key = self._row.key
        return self._secrets.place(key) if key else GOOGLE_FILE

    def _where(self) -> str:
        key = self._row.key
        return key.describe() if key else "the Google credentials of this environment"


def make_google_token(row: ProviderRow, services: ProviderServices) -> Authorization:
    """Return the authorization of a Google Cloud row."""
    identity = required_credentials(row, services.credentials)
    role = AwsRole(identity, services.aws_region)
    return GoogleToken(row, services.secrets, services.clock, file=services.google_file, role=role)


class _Reply(Struct, frozen=True):
    """A reply in the shape that google-auth reads."""

    status: int
    headers: Mapping[str, str]
    data: bytes


def _over_http(
    url: str | None,
    method: str = "GET",
    body: bytes | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    timeout: float | None = None,
    **options: Any,
) -> _Reply:
    """Send one request for google-auth, because its own HTTP clients are not deployed."""
    # Already imported, because google-auth calls this function.
    from google.auth.exceptions import TransportError

    if not url:
        # The URL comes from the JSON, and google-auth does not check that there is one.
        raise TransportError("a URL is missing")  # type: ignore[no-untyped-call]
    named = {name.lower(): value for name, value in (headers or {}).items()}
    request = Request(
        method=cast("Method", method),
        url=url.partition("#")[0],
        headers={**USUAL_HEADERS, **named},
        body=(body,) if body else (),
    )
    try:
        # This thread has no event loop yet.
        return asyncio.run(_send(request, min(timeout or _TIMEOUT_S, _TIMEOUT_S)))
    except InvalidRequest as invalid:
        raise TransportError(invalid) from invalid  # type: ignore[no-untyped-call]
    except HttpError as broken:
        raise TransportError(broken, retryable=True) from broken  # type: ignore[no-untyped-call]


async def _send(request: Request, timeout_s: float) -> _Reply:
    async with send_alone(request, timeout_s=timeout_s) as reply:
        return _Reply(reply.status, reply.headers, await reply.read_all(_REPLY_BYTES_MAX))
