"""Bodies and replies of the routes of legal holds and erasures."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from tollgate.core.records.subjects import Erasure, LegalHold, PrivacySubject, PrivacySubjectKind
from tollgate.stores.ports.subjects import ERASURES_PAGE_MAX
from tollgate.web.shapes import Body, Unreadable, moment, moment_or_none

_ID_LENGTH_MAX = 512
_REASON_LENGTH_MAX = 500


class SubjectBody(Body):
    """An end user, a member or a workspace."""

    kind: PrivacySubjectKind
    id: Annotated[str, Field(min_length=1, max_length=_ID_LENGTH_MAX)] = Field(
        description="the end user as requests state it in `user`, or the id of the member or "
        "of this workspace"
    )

    def subject(self, workspace_id: str) -> PrivacySubject:
        """Return the subject in a workspace."""
        return PrivacySubject(workspace_id=workspace_id, kind=self.kind, id=self.id)


class NewHoldBody(SubjectBody):
    """A legal hold to place."""

    reason: Annotated[str, Field(min_length=1, max_length=_REASON_LENGTH_MAX)] = Field(
        description="such as the number of a case; shown in the audit log"
    )


class HoldObject(BaseModel):
    """A legal hold: what it covers is not erased, not deleted by callers, and does not expire."""

    id: str
    kind: PrivacySubjectKind
    subject: str
    reason: str
    placed_at: datetime
    placed_by: str = Field(description="id of the key or session")
    by_operator: bool = Field(description="true if only the operator may release the hold")
    preserved_at: datetime | None = Field(
        description="last round that kept records and contents from expiring; null before the first"
    )

    @classmethod
    def of(cls, held: LegalHold) -> "HoldObject":
        """Build the object from a stored hold."""
        return cls(
            id=held.subject.place,
            kind=held.subject.kind,
            subject=held.subject.id,
            reason=held.reason,
            placed_at=moment(held.placed_s),
            placed_by=held.placed_by,
            by_operator=held.by_operator,
            preserved_at=moment_or_none(held.preserved_s),
        )


class HoldReply(BaseModel):
    """One legal hold."""

    data: HoldObject


class HoldsReply(BaseModel):
    """The legal holds of a workspace."""

    data: list[HoldObject]


class ReleasedHoldReply(BaseModel):
    """A legal hold that was released."""

    id: str
    released: Literal[True] = True


class ErasureObject(BaseModel):
    """An erasure, and its proof once it is finished."""

    kind: PrivacySubjectKind
    subject: str = Field(description="SHA-256 of an end user's id once the erasure is finished")
    requested_at: datetime = Field(description="requests that began before are erased")
    requested_by: str = Field(description="id of the key or session")
    erased: dict[str, int] = Field(
        description="erased items by class, as far as rounds were not interrupted"
    )
    days: list[str] = Field(description="UTC days of the erased records")
    waiting: list[str] = Field(description="reasons why the last round did not finish")
    finished_at: datetime | None
    backups_until: datetime | None = Field(
        description="until then, backups of the tables have what was erased"
    )

    @classmethod
    def of(cls, erasure: Erasure) -> "ErasureObject":
        """Build the object from a stored erasure."""
        return cls(
            kind=erasure.subject.kind,
            subject=erasure.subject.id,
            requested_at=moment(erasure.requested_s),
            requested_by=erasure.requested_by,
            erased=dict(erasure.erased),
            days=list(erasure.days),
            waiting=list(erasure.waiting),
            finished_at=moment_or_none(erasure.finished_s),
            backups_until=moment_or_none(erasure.backups_until_s),
        )


class ErasureReply(BaseModel):
    """One erasure."""

    data: ErasureObject


class ErasuresReply(BaseModel):
    """Erasures in any order; `next_cursor` is the `cursor` of the next page."""

    data: list[ErasureObject]
    next_cursor: str | None
    unreadable: Unreadable


class ErasuresQuery(BaseModel):
    """The page of erasures to return."""

    model_config = ConfigDict(extra="ignore")

    cursor: Annotated[str, Field(max_length=128)] | None = Field(
        None, description="the `next_cursor` of the previous page"
    )
    limit: Annotated[int, Field(ge=1, le=ERASURES_PAGE_MAX)] = ERASURES_PAGE_MAX
