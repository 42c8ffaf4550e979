"""Refusals of the token endpoint, with the error codes of OAuth."""

from typing import Literal

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
    """A refused request for tokens."""

    def __init__(self, code: RefusalCode, description: str, *, status: int | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.status = status or _STATUSES.get(code, 400)


def sign_in_over(reason: str) -> OAuthRefusal:
    """Return the refusal of a refresh token whose sign-in has ended."""
    # Status 401 makes Claude Code ask for a new sign-in.
    return OAuthRefusal("invalid_grant", reason, status=401)


def refresh_is_busy() -> OAuthRefusal:
    """Return the refusal of a refresh while another one is in progress."""
    return OAuthRefusal(
        "temporarily_unavailable",
        "Another program is refreshing: read the new token, or try again.",
    )
