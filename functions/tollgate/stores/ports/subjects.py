"""The protocol of the store of legal holds and erasures."""

from typing import Final, Protocol

from tollgate.core.pages import Page
from tollgate.core.records.audit import Actor
from tollgate.core.records.subjects import Erasure, LegalHold, PrivacySubject

ERASURES_PAGE_MAX: Final = 100


class SubjectStore(Protocol):
    """The legal holds and erasures of all workspaces, which scheduled rounds carry out.

    A change and its audit log entry are written together. Every method raises
    LedgerError(service_unavailable) if the store cannot be reached.
    """

    async def holds(self, workspace_id: str) -> tuple[LegalHold, ...]:
        """Return the legal holds of a workspace."""

    async def hold(self, held: LegalHold, *, by: Actor) -> bool:
        """Place a hold; return False if the subject is on hold.

        Raise RequestError if the workspace has STANDING_MAX holds.
        """

    async def release(self, held: LegalHold, *, by: Actor) -> bool:
        """Release a hold; return False if there is none."""

    async def erasures(
        self, workspace_id: str, *, after: str | None = None, limit: int = ERASURES_PAGE_MAX
    ) -> Page[Erasure]:
        """Return a page of a workspace's erasures, finished or not, in any order."""

    async def request(self, subject: PrivacySubject, *, by: Actor) -> Erasure:
        """Request an erasure, again after one that is finished; return the open erasure.

        Raise AccessError if a legal hold covers the subject. Raise RequestError for a member who
        was not removed, for a workspace that is not locked, and beyond STANDING_MAX open erasures.
        """
