"""Authentication of a request by its headers."""

from collections.abc import Collection, Mapping
from typing import get_args

from tollgate.core.errors import AccessError, ErrorCode
from tollgate.core.principal import KeyRole, MemberRole, Principal, Role
from tollgate.stores.ports.base import KeyDirectory


def has_key(headers: Mapping[str, str]) -> bool:
    """Return whether a request has a key, valid or not."""
    return "authorization" in headers or "x-api-key" in headers


async def authenticate(
    keys: KeyDirectory, headers: Mapping[str, str], roles: Collection[Role]
) -> Principal:
    """Return the holder of the key in the `Authorization: Bearer` header, or in `x-api-key`.

    Raises AccessError(invalid_api_key) if there is no valid key, and AccessError(permission_denied)
    if the key's role is not in `roles`.
    """
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    if not scheme:
        # Anthropic's clients send the key in `x-api-key`.
        scheme, secret = "bearer", headers.get("x-api-key", "")
    if scheme.lower() != "bearer" or not secret.strip():
        raise AccessError(
            ErrorCode.INVALID_API_KEY,
            "Send your API key as `Authorization: Bearer <key>` or as `x-api-key: <key>`.",
        )
    principal = await keys.authenticate(secret.strip())
    if principal.role not in roles:
        raise AccessError(ErrorCode.PERMISSION_DENIED, _explain_refusal(principal, roles))
    return principal


def _explain_refusal(principal: Principal, roles: Collection[Role]) -> str:
    """Return a message that names the roles, of the caller's kind, that the route serves."""
    kind, kind_roles = ("member", MemberRole) if principal.session else ("key", KeyRole)
    needed = " or ".join(sorted(role for role in get_args(kind_roles) if role in roles))
    if not needed:
        other = "key" if principal.session else "session of a member who has signed in"
        return f"This needs a {other}, not a {kind} of role {principal.role}."
    return f"This needs a {kind} of role {needed}, not {principal.role}."
