"""The protocol of the store of legal holds and erasures."""

from typing import Final, Protocol

from tollgate.core.pages import Page
from tollgate.core.records.audit import Actor
from tollgate.core.records.subjects import Erasure, LegalHold, PrivacySubject

ERASURES_PAGE_MAX: Final = 100


class SubjectStore(Protocol):
    """Stores the legal holds and erasures of all workspaces; scheduled rounds carry them out.

    Each change is written together with its audit log entry. Every method raises
    LedgerError(service_unavailable) if the store cannot be reached.
    """

    async def holds(self, workspace_id: str) -> tuple[LegalHold, ...]:
        """Return the legal holds of a workspace."""

    async def hold(self, hold: LegalHold, *, by: Actor) -> bool:
        """Place a hold; return False if the subject is already on hold.

        Raise RequestError if the workspace has STANDING_MAX holds.
        """

    async def release(self, hold: LegalHold, *, by: Actor) -> bool:
        """Release a hold; return False if the subject is not on hold."""

    async def erasures(
        self, workspace_id: str, *, after: str | None = None, limit: int = ERASURES_PAGE_MAX
    ) -> Page[Erasure]:
        """Return a page of a workspace's open and finished erasures, in no particular order."""

    async def request(self, subject: PrivacySubject, *, by: Actor) -> Erasure:
        """Request an erasure, unless one is open; return the open erasure.

        Raise AccessError if a legal hold covers the subject. Raise RequestError if the member was
        not removed, if the workspace is not locked, or if STANDING_MAX erasures are open.
        """
