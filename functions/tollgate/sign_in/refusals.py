"""The refusals of OAuth 2.0, in its own words."""

from typing import Literal

from msgspec import Struct

# RFC 6749, 5.2; RFC 8628, 3.5.
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
    """A request of a program that signs a person in is refused."""

    def __init__(self, code: RefusalCode, description: str, *, status: int | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.status = status or _STATUSES.get(code, 400)


class TokenPair(Struct, frozen=True, kw_only=True):
    """A session, and the token that opens the next one."""

    access_token: str
    expires_in: int
    """Seconds."""
    refresh_token: str | None
    """None if the issuer gave none, so that nobody could ask it whether the person may stay."""
