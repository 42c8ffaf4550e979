"""Creates audit log entries, which show the changed fields as text."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct

from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.money.amounts import usd_text
from tollgate.core.records.audit import Actor, AuditEntry

_ENTRY_ID: Final = re.compile(r"\d{13}\.[-0-9A-Z_a-z]{15}")
# The latest time that an entry id can express, in the year 2286.
_LAST_MS: Final = 9_999_999_999_999
# Fields that identify a person. Entries cannot be erased, so they contain pseudonyms instead.
_PERSONAL: Final = frozenset({"display_name", "email", "subject"})
# Fields that have a different name for callers.
_NAMES: Final = {"label": "name"}


class SecretChange(Struct, frozen=True, kw_only=True):
    """The last characters of a key's secret, as shown in an entry."""

    secret: str
    old_secret_expires_s: int | None = None
    """Unix second at which the replaced secret expires."""


class RotationDue(Struct, frozen=True, kw_only=True):
    """A key whose secret has to be rotated, as shown in an entry."""

    secret: str
    secret_expires_s: int
    """Unix second from which the secret is refused."""


class SubjectChange(Struct, frozen=True, kw_only=True):
    """The sign-in identity of a member, as shown in an entry."""

    subject: str


class SessionChange(Struct, frozen=True, kw_only=True):
    """A session of a member, as shown in an entry."""

    session_id: str
    expires_s: int | None = None
    """Unix second from which the latest secret is refused."""


class CreditChange(Struct, frozen=True, kw_only=True):
    """The fields of a credit entry that are shown in the audit log."""

    amount_nano_usd: int
    note: str | None
    generation_id: str | None
    expires_s: int | None = None


class LockChange(Struct, frozen=True, kw_only=True):
    """The lock of a workspace, as shown in an entry."""

    locked: bool
    paused: bool = False


class AuditedChange(Struct, frozen=True, kw_only=True):
    """A change to record; see `AuditEntry` for the fields."""

    action: str
    target: str
    workspace_id: str | None
    target_name: str | None = None
    before: Struct | None = None
    """Settings before the change; the entry contains only fields that differ."""
    after: Struct | None = None


def cache_cleared(workspace_id: str) -> AuditedChange:
    """Return the change that empties a workspace's cache of answers."""
    return AuditedChange(action="cache.clear", target=workspace_id, workspace_id=workspace_id)


def is_entry_id(text: str) -> bool:
    """Return True if a text has the format of entry ids and cursors."""
    return _ENTRY_ID.fullmatch(text) is not None


def first_entry_id(at_ms: int) -> str:
    """Return an id that is lower than all entry ids from a Unix millisecond."""
    return f"{min(at_ms, _LAST_MS):013d}.{'-' * 15}"


def describe(settings: Struct | None) -> dict[str, str]:
    """Return the fields that have a value, as text: amounts in USD and times in ISO 8601.

    A mapping becomes one field for each of its keys, and a struct one for each of its fields.
    """
    if settings is None:
        return {}
    described: dict[str, str] = {}
    for name in settings.__struct_fields__:
        value = getattr(settings, name)
        if value is not None:
            described |= _describe(name, value)
    return described


def new_entry(change: AuditedChange, by: Actor, *, ids: IdSource, clock: Clock) -> AuditEntry:
    """Return the entry for a change made now, with the fields that differ."""
    at_ms = int(clock.now_s() * 1_000)
    before, after = describe(change.before), describe(change.after)
    return AuditEntry(
        id=f"{at_ms:013d}.{ids.new_id()}",
        at_ms=at_ms,
        actor=by,
        workspace_id=change.workspace_id,
        action=change.action,
        target=change.target,
        target_name=change.target_name,
        before={name: text for name, text in before.items() if after.get(name) != text},
        after={name: text for name, text in after.items() if before.get(name) != text},
    )


def _describe(name: str, value: Any) -> dict[str, str]:
    text: Callable[[Any], str]
    shown_name, text = _NAMES.get(name, name), _pseudonym if name in _PERSONAL else _text
    if name.endswith("_nano_usd"):
        shown_name, text = name.removesuffix("_nano_usd"), usd_text
    elif name.endswith("_s"):
        shown_name, text = f"{name.removesuffix('_s')}_at", _moment
    if isinstance(value, Struct):
        return {f"{shown_name}.{key}": inner for key, inner in describe(value).items()}
    if isinstance(value, Mapping):
        return {f"{shown_name}.{key}": text(inner_value) for key, inner_value in value.items()}
    return {shown_name: text(value)}


def _text(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def _pseudonym(value: str) -> str:
    """Return the start of a value's SHA-256, which shows only whether a known value was meant."""
    return f"sha256:{sha256(value.encode()).hexdigest()[:12]}"


def _moment(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat().replace("+00:00", "Z")
