"""The protocol of the store of legal holds and erasures."""

from typing import Protocol

from tollgate.core.records.audit import Actor
from tollgate.core.records.subjects import Erasure, LegalHold, PrivacySubject


class SubjectStore(Protocol):
    """The legal holds and erasures of all workspaces, which scheduled rounds carry out.

    A change and its audit log entry are written together. Every method raises
    LedgerError(service_unavailable) if the store cannot be reached.
    """

    async def holds(self, workspace_id: str) -> tuple[LegalHold, ...]:
        """Return the legal holds of a workspace."""

    async def hold(self, held: LegalHold, *, by: Actor) -> bool:
        """Place a hold; return False if the subject is on hold."""

    async def release(self, held: LegalHold, *, by: Actor) -> bool:
        """Release a hold; return False if there is none."""

    async def erasures(self, workspace_id: str) -> tuple[Erasure, ...]:
        """Return the erasures of a workspace, finished or not."""

    async def request(self, subject: PrivacySubject, *, by: Actor) -> Erasure:
        """Request an erasure, again after one that is finished; return the open erasure.

        Raise AccessError if a legal hold covers the subject. Raise RequestError for a member who
        was not removed, and for a workspace that is not locked.
        """
