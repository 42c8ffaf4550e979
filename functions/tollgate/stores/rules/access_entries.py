"""Creates the audit log entries for accesses, with ids that repeat within an hour, so that each
entry is stored once an hour.
"""

from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Final

from tollgate.core.records.audit import ACCESS_ACTIONS, Actor, AuditEntry
from tollgate.stores.ports.access_log import Denial, ReadContent

HOUR_S: Final = 3_600
# Maximum number of entries per hour for refused calls without a valid key. Network addresses share
# them, so a flood from many addresses cannot fill the log.
ADDRESS_PLACES: Final = 64
_ID_LENGTH: Final = 15
_READ_ACTIONS: Final = dict(zip(("content", "response", "file"), ACCESS_ACTIONS[:3], strict=True))


def entry_of_read(kind: ReadContent, target: str, by: Actor, *, now_s: float) -> AuditEntry:
    """Return the entry for a read; all reads of an object by the same actor in an hour share one
    id.
    """
    action = _READ_ACTIONS[kind]
    return _entry(action, target, by, now_s=now_s, same=(action, target, by.id))


def entry_of_refusal(
    refusal: Denial, target: str, code: str, by: Actor, *, now_s: float
) -> AuditEntry:
    """Return the entry for a refusal; within an hour, the id is the same for an actor, route and
    code.

    Callers without a valid key share `ADDRESS_PLACES` ids, chosen by the hash of their network
    address.
    """
    same: tuple[str, ...] = (refusal, target, code, by.id)
    if by.workspace_id is None:
        digest = sha256((by.origin or "").encode()).digest()
        same = (refusal, by.id, str(digest[0] % ADDRESS_PLACES))
    return _entry(refusal, target, by, now_s=now_s, same=same, after={"code": code})


def _entry(
    action: str,
    target: str,
    by: Actor,
    *,
    now_s: float,
    same: tuple[str, ...],
    after: dict[str, str] | None = None,
) -> AuditEntry:
    hour_ms = int(now_s // HOUR_S) * HOUR_S * 1_000
    digest = urlsafe_b64encode(sha256("\n".join((*same, by.workspace_id or "")).encode()).digest())
    return AuditEntry(
        id=f"{hour_ms:013d}.{digest[:_ID_LENGTH].decode()}",
        at_ms=int(now_s * 1_000),
        actor=by,
        workspace_id=by.workspace_id,
        action=action,
        target=target,
        after=after or {},
    )
