"""Subjects of stored data: an end user, a member or a workspace; their legal holds and erasures."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from tollgate.core.clock import DAY_S
from tollgate.core.errors import AccessError, invalid_request, permission_denied
from tollgate.core.principal import MEMBER_LABEL
from tollgate.core.records.generation import GenerationRecord

PrivacySubjectKind = Literal["user", "member", "workspace"]
# The time after which everything that a request writes is written. A function runs for 15 minutes
# at most, and the sweeper settles what it leaves 17 minutes later.
WRITTEN_AFTER_S: Final = 3_600
# The number of holds, and of open erasures, that a workspace may have.
STANDING_MAX: Final = 100
# The time for which backups of the tables (point-in-time recovery) have what was erased.
BACKUPS_S: Final = 35 * DAY_S


class PrivacySubject(Struct, frozen=True, kw_only=True):
    """An end user, a member, or a whole workspace."""

    workspace_id: str
    kind: PrivacySubjectKind
    id: str
    """The end user as requests state it, the id of the member, or the id of the workspace."""

    @property
    def digest(self) -> str:
        """SHA-256 of the id, so that a proof does not have the id of an end user."""
        return sha256(self.id.encode()).hexdigest()

    @property
    def place(self) -> str:
        """The name of the subject's hold and erasure within the workspace."""
        return f"{self.kind}-{self.digest[:32]}"

    def has_member(self, member_id: str | None) -> bool:
        """Return whether the things of a member are the subject's; None for nobody's things."""
        return self.kind == "workspace" or (self.kind == "member" and self.id == member_id)

    def has_record(self, record: GenerationRecord) -> bool:
        """Return whether a generation is the subject's."""
        return self.has_member(record.labels.get(MEMBER_LABEL)) or (
            self.kind == "user" and self.id == record.user
        )

    def overlaps(self, other: "PrivacySubject") -> bool:
        """Return whether one of two subjects of a workspace is, or contains, the other."""
        return "workspace" in (self.kind, other.kind) or self == other


class LegalHold(Struct, frozen=True, kw_only=True):
    """A hold on what is stored of a subject, which is then neither erased nor left to expire."""

    subject: PrivacySubject
    reason: str
    placed_s: int
    placed_by: str
    """The id of the key, session or process that placed the hold."""
    by_operator: bool
    """True if only the operator may release the hold."""
    preserved_s: int | None = None
    """Unix second of the last round that preserved what would expire; None before the first."""
    released_s: int | None = None
    """Unix second of the release, after which a round lets everything expire again."""


class Erasure(Struct, frozen=True, kw_only=True):
    """The erasure of a subject: requested, then done in rounds, then the proof."""

    subject: PrivacySubject
    """A finished erasure of an end user has the digest in place of the id."""
    requested_s: int
    requested_by: str
    erased: Mapping[str, int] = field(default_factory=dict)
    """The number of erased items by class."""
    days: tuple[str, ...] = ()
    """UTC days of the erased records."""
    waiting: tuple[str, ...] = ()
    """Reasons why the last round could not finish."""
    finished_s: int | None = None

    @property
    def until_s(self) -> int:
        """The Unix second before which erased requests began: 60 s for caches and clocks."""
        return self.requested_s + 60

    @property
    def backups_until_s(self) -> int | None:
        """The Unix second from which no backup has erased items; None for an open erasure."""
        return None if self.finished_s is None else self.finished_s + BACKUPS_S

    def end(self, now_s: int) -> "Erasure":
        """Return the proof, without the id of an end user."""
        subject = self.subject
        if subject.kind == "user":
            subject = replace(subject, id=subject.digest)
        return replace(self, subject=subject, finished_s=now_s)


def on_hold() -> AccessError:
    """Return the refusal for what a legal hold covers."""
    return permission_denied("This is on legal hold, so it cannot be deleted.")


def refuse_held(subject: PrivacySubject, holds: tuple[LegalHold, ...]) -> None:
    """Raise AccessError if a legal hold covers a subject, or a part of it."""
    if any(hold.subject.overlaps(subject) for hold in holds):
        raise on_hold()


def check_room(standing: int, what: str) -> None:
    """Raise RequestError if a workspace has as many holds, or open erasures, as it may have.

    Each costs the rounds a pass over all records.
    """
    if standing >= STANDING_MAX:
        raise invalid_request(f"A workspace may have {STANDING_MAX} {what}.")


def is_held(record: GenerationRecord, holds: tuple[LegalHold, ...]) -> bool:
    """Return whether a legal hold covers a generation."""
    return any(hold.subject.has_record(record) for hold in holds)
