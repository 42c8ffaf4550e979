"""Checks which members a caller may add and change: none with more rights than its own."""

from msgspec.structs import replace

from tollgate.core.errors import AccessError, ErrorCode
from tollgate.core.principal import MemberRole, Principal
from tollgate.stores.rules.level_settings import MemberSettings
from tollgate.web.access import GIVEN_ROLES, OWN_MEMBER_SETTINGS


def check_role(role: MemberRole, principal: Principal) -> None:
    """Raise AccessError unless the caller may give and take this role."""
    if role not in GIVEN_ROLES.get(principal.role, ()):
        raise _denied(
            "Only an owner or the operator may add and change owners."
            if role == "owner"
            else f"A {principal.role} may not give the role {role}.",
            "role",
        )


def check_member_change(
    member_id: str, old: MemberSettings, new: MemberSettings, principal: Principal
) -> None:
    """Raise AccessError unless the caller may change a member in this way.

    Members other than owners may change only their own display name and e-mail address.
    """
    check_role(old.role, principal)
    check_role(new.role, principal)
    if principal.member_id != member_id or principal.role == "owner":
        return
    if replace(new, **{name: getattr(old, name) for name in OWN_MEMBER_SETTINGS}) != old:
        raise _denied("You may not change your own role, team or limits.", "member_id")


def _denied(message: str, param: str) -> AccessError:
    return AccessError(ErrorCode.PERMISSION_DENIED, message, param=param)
