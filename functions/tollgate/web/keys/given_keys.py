"""Checks which keys a caller may create and change: none with more rights than its own."""

from msgspec.structs import replace

from tollgate.core.errors import AccessError, ErrorCode, RequestError
from tollgate.core.principal import Principal
from tollgate.core.records.activity import MEMBER_LABEL, TEAM_LABEL
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.people import SESSION_KEY_PREFIX
from tollgate.stores.rules.key_settings import KeySettings
from tollgate.web.access import GIVEN_KEYS, OWN_KEY_SETTINGS
from tollgate.web.own import Own


def check_new_key(new: NewKey, principal: Principal, own: Own) -> NewKey:
    """Return a new key as its caller may create it; a member's new key belongs to that member.

    Raises AccessError for a role or a setting that the caller may not give, and RequestError for a
    name that is reserved for session keys.
    """
    if new.role not in GIVEN_KEYS.get(principal.role, ()):
        raise _denied(f"A {principal.role} may not create keys of role {new.role}.", "role")
    refuse_session_name(new.label)
    if own.is_all:
        return new
    if new.member_id not in (None, own.member_id):
        raise _denied("You may only create keys of your own.", "member_id")
    if new.team_id not in (None, own.team_id):
        raise _denied("Your keys may only belong to your own team, or to none.", "team_id")
    if new.tier is not None:
        raise _denied("Only an administrator may set a tier.", "tier")
    # The spending of a key without a team counts for the team that its label names.
    for name, own_value in ((TEAM_LABEL, own.team_id), (MEMBER_LABEL, own.member_id)):
        if new.labels.get(name) not in (None, own_value):
            raise _denied(f"The label {name} of your keys must be your {name}.", f"labels.{name}")
    return replace(new, member_id=own.member_id)


def check_key_change(old: KeySettings, new: KeySettings, own: Own) -> KeySettings:
    """Return the new settings of a key; raise unless the caller may change the key in this way.

    Members may rename and disable their own keys; administrators set limits and re-enable keys.
    """
    if is_session_key(old) and not _only_frees(old, new):
        raise session_key_refused()
    if new.label != old.label:
        refuse_session_name(new.label)
    if own.is_all:
        return new
    rest = replace(new, **{name: getattr(old, name) for name in OWN_KEY_SETTINGS})
    if rest != old or (old.disabled and not new.disabled):
        raise _denied("Members may only rename or disable their keys; ask an administrator.", None)
    return new


def _only_frees(old: KeySettings, new: KeySettings) -> bool:
    """Return whether a change only enables a key and takes limits in dollars away.

    Earlier versions let administrators disable and limit session keys.
    """
    kept = replace(new, disabled=old.disabled, limits_nano_usd=old.limits_nano_usd)
    limits = old.limits_nano_usd.items()
    return kept == old and new.disabled <= old.disabled and new.limits_nano_usd.items() <= limits


def session_key_refused() -> RequestError:
    """Return the refusal of a change to the key of a member's sessions."""
    return RequestError(
        ErrorCode.INVALID_REQUEST,
        "The key of a member's sessions is not managed as a key: end sessions at "
        "/v1/members/{member_id}/sessions, and limit or remove the member.",
        param="key_id",
    )


def is_session_key(key: KeySettings) -> bool:
    """Return whether a key is that of a member's sessions."""
    return key.member_id is not None and key.label.startswith(SESSION_KEY_PREFIX)


def refuse_session_name(name: str) -> None:
    """Raise RequestError for a name that is reserved for session keys."""
    if name.startswith(SESSION_KEY_PREFIX):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"name: {SESSION_KEY_PREFIX} is reserved for the keys of sessions.",
            param="name",
        )


def _denied(message: str, param: str | None) -> AccessError:
    return AccessError(ErrorCode.PERMISSION_DENIED, message, param=param)
