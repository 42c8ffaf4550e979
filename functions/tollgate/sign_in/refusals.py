"""The error replies of OAuth 2.0."""

from typing import Literal

from msgspec import Struct

# Error codes of RFC 6749, 5.2, and RFC 8628, 3.5.
RefusalCode = Literal[
    "access_denied",
    "authorization_pending",
    "expired_token",
    "invalid_client",
    "invalid_grant",
    "invalid_request",
    "slow_down",
    "temporarily_unavailable",
    "unsupported_grant_type",
]
_STATUSES: dict[RefusalCode, int] = {
    "slow_down": 429,
    "temporarily_unavailable": 503,
}


class OAuthRefusal(Exception):
    """The request of a program for tokens is refused."""

    def __init__(self, code: RefusalCode, description: str, *, status: int | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.status = status or _STATUSES.get(code, 400)


class TokenPair(Struct, frozen=True, kw_only=True):
    """A session's token, and the refresh token for the next session."""

    access_token: str
    expires_in: int
    """Seconds until the access token expires."""
    refresh_token: str | None
    """None if the issuer returned none: then nothing could tell whether the person may stay."""
