"""Audit log entries of legal holds and erasures, which have no id of an end user."""

from collections.abc import Mapping

from msgspec import Struct

from tollgate.core.records.subjects import Erasure, LegalHold, PrivacySubject, PrivacySubjectKind
from tollgate.stores.rules.audit_entries import AuditedChange


class HoldChange(Struct, frozen=True, kw_only=True):
    """A legal hold as an entry shows it."""

    kind: PrivacySubjectKind
    reason: str


class ErasureChange(Struct, frozen=True, kw_only=True):
    """An erasure as an entry shows it: requested, or finished with the erased items by class."""

    kind: PrivacySubjectKind
    requested_s: int | None = None
    erased: Mapping[str, str] | None = None
    backups_until_s: int | None = None


def hold_placed(held: LegalHold) -> AuditedChange:
    """Return the change by which a hold is placed."""
    after = HoldChange(kind=held.subject.kind, reason=held.reason)
    return _change("hold.place", held.subject, after=after)


def hold_released(held: LegalHold) -> AuditedChange:
    """Return the change by which a hold is released."""
    before = HoldChange(kind=held.subject.kind, reason=held.reason)
    return _change("hold.release", held.subject, before=before)


def erasure_requested(subject: PrivacySubject) -> AuditedChange:
    """Return the change by which an erasure is requested."""
    return _change("erasure.request", subject, after=ErasureChange(kind=subject.kind))


def erasure_finished(erasure: Erasure) -> AuditedChange:
    """Return the change by which an erasure ends, which is its proof."""
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
    # A finished erasure has the digest in place of the id.
    hides = subject.kind == "user" and not finished
    return AuditedChange(
        action=action,
        target=subject.digest if hides else subject.id,
        workspace_id=subject.workspace_id,
        before=before,
        after=after,
    )
