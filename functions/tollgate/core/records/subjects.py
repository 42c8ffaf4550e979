"""The subjects of stored data (end users, members, workspaces), with their legal holds and
erasures.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from tollgate.core.clock import DAY_S
from tollgate.core.errors import AccessError, invalid_request, permission_denied
from tollgate.core.jobs import Job
from tollgate.core.principal import MEMBER_LABEL
from tollgate.core.records.generation import GenerationRecord

PrivacySubjectKind = Literal["user", "member", "workspace"]
# The time after which a request has certainly finished writing. A function runs for at most 15
# minutes, and the sweeper settles the holds of a dead function 17 minutes later.
WRITTEN_AFTER_S: Final = 3_600
# The maximum number of legal holds, and of open erasures, per workspace.
STANDING_MAX: Final = 100
# The time for which table backups (point-in-time recovery) still contain erased items.
BACKUPS_S: Final = 35 * DAY_S


class PrivacySubject(Struct, frozen=True, kw_only=True):
    """An end user, a member, or a whole workspace."""

    workspace_id: str
    kind: PrivacySubjectKind
    id: str
    """An end user as named in the `user` field of requests, or the id of a member or workspace."""

    @property
    def digest(self) -> str:
        """SHA-256 of the id, which stands for an end user's id in a proof."""
        return sha256(self.id.encode()).hexdigest()

    @property
    def place(self) -> str:
        """The id of the subject's legal hold, and of its erasure, within the workspace."""
        return f"{self.kind}-{self.digest[:32]}"

    def has_member(self, member_id: str | None) -> bool:
        """Return whether the subject includes what a member owns, or, for None, what no member
        owns.
        """
        return self.kind == "workspace" or (self.kind == "member" and self.id == member_id)

    def has_record(self, record: GenerationRecord) -> bool:
        """Return whether the subject includes a generation."""
        return self.has_member(record.labels.get(MEMBER_LABEL)) or (
            self.kind == "user" and self.id == record.user
        )

    def has_job(self, job: Job) -> bool:
        """Return whether the subject includes a job."""
        return self.has_member(job.member_id) or (self.kind == "user" and self.id == job.user)

    def overlaps(self, other: "PrivacySubject") -> bool:
        """Return whether two subjects of a workspace are the same or one contains the other."""
        return "workspace" in (self.kind, other.kind) or self == other


class LegalHold(Struct, frozen=True, kw_only=True):
    """A legal hold: the stored data of its subject is not erased and does not expire."""

    subject: PrivacySubject
    reason: str
    placed_s: int
    placed_by: str
    """The id of the key, session or process that placed the hold."""
    by_operator: bool
    """True if only the operator may release the hold."""
    preserved_s: int | None = None
    """Unix second of the last round that preserved data from expiring; None before the
    first round.
    """
    released_s: int | None = None
    """Unix second of the release, after which a round restores the expiry dates."""


class Erasure(Struct, frozen=True, kw_only=True):
    """The erasure of a subject, which is carried out in rounds; a finished erasure is the proof."""

    subject: PrivacySubject
    """The subject; once the erasure is finished, an end user's id is replaced by its digest."""
    requested_s: int
    requested_by: str
    erased: Mapping[str, int] = field(default_factory=dict)
    """Number of erased items, by class."""
    days: tuple[str, ...] = ()
    """UTC days of the records from which the person was removed."""
    waiting: tuple[str, ...] = ()
    """Reasons why the last round could not finish."""
    finished_s: int | None = None

    @property
    def until_s(self) -> int:
        """Unix second; requests that began before it are erased. 60 s allow for caches and clock
        differences.
        """
        return self.requested_s + 60

    @property
    def backups_until_s(self) -> int | None:
        """Unix second after which no backup contains erased items; None for an open erasure."""
        return None if self.finished_s is None else self.finished_s + BACKUPS_S

    def end(self, now_s: int) -> "Erasure":
        """Return the proof, which does not contain an end user's id."""
        subject = self.subject
        if subject.kind == "user":
            subject = replace(subject, id=subject.digest)
        return replace(self, subject=subject, finished_s=now_s)


def on_hold() -> AccessError:
    """Return the error for an attempt to delete data that is on legal hold."""
    return permission_denied("This is on legal hold, so it cannot be deleted.")


def refuse_held(subject: PrivacySubject, holds: tuple[LegalHold, ...]) -> None:
    """Raise AccessError if a legal hold covers the subject or part of it."""
    if any(hold.subject.overlaps(subject) for hold in holds):
        raise on_hold()


def check_room(count: int, what: str) -> None:
    """Raise RequestError if a workspace has reached the maximum number of holds or open erasures.

    The number is limited because each round goes through all records once for each of them.
    """
    if count >= STANDING_MAX:
        raise invalid_request(f"A workspace may have at most {STANDING_MAX} {what}.")


def is_held(record: GenerationRecord, holds: tuple[LegalHold, ...]) -> bool:
    """Return whether a legal hold covers a generation."""
    return any(hold.subject.has_record(record) for hold in holds)
