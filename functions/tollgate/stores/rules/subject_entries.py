"""Audit log entries for legal holds and erasures, without ids of end users."""

from collections.abc import Mapping

from msgspec import Struct

from tollgate.core.records.subjects import Erasure, LegalHold, PrivacySubject, PrivacySubjectKind
from tollgate.stores.rules.audit_entries import AuditedChange


class HoldChange(Struct, frozen=True, kw_only=True):
    """A legal hold, as shown in an entry."""

    kind: PrivacySubjectKind
    reason: str


class ErasureChange(Struct, frozen=True, kw_only=True):
    """An erasure, as shown in an entry; a finished erasure has the numbers of erased items."""

    kind: PrivacySubjectKind
    requested_s: int | None = None
    erased: Mapping[str, str] | None = None
    backups_until_s: int | None = None


def hold_placed(hold: LegalHold) -> AuditedChange:
    """Return the entry for a placed hold."""
    after = HoldChange(kind=hold.subject.kind, reason=hold.reason)
    return _change("hold.place", hold.subject, after=after)


def hold_released(hold: LegalHold) -> AuditedChange:
    """Return the entry for a released hold."""
    before = HoldChange(kind=hold.subject.kind, reason=hold.reason)
    return _change("hold.release", hold.subject, before=before)


def erasure_requested(subject: PrivacySubject) -> AuditedChange:
    """Return the entry for a requested erasure."""
    return _change("erasure.request", subject, after=ErasureChange(kind=subject.kind))


def erasure_finished(erasure: Erasure) -> AuditedChange:
    """Return the entry for a finished erasure, which is its proof."""
    after = ErasureChange(
        kind=erasure.subject.kind,
        requested_s=erasure.requested_s,
        erased={name: str(count) for name, count in sorted(erasure.erased.items())},
        backups_until_s=erasure.backups_until_s,
    )
    return _change("erasure.finish", erasure.subject, after=after, finished=True)


def _change(
    action: str,
    subject: PrivacySubject,
    *,
    before: Struct | None = None,
    after: Struct | None = None,
    finished: bool = False,
) -> AuditedChange:
    # The subject of a finished erasure already contains the digest in place of the id.
    hides = subject.kind == "user" and not finished
    return AuditedChange(
        action=action,
        target=subject.digest if hides else subject.id,
        workspace_id=subject.workspace_id,
        before=before,
        after=after,
    )
