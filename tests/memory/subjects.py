"""Legal holds and erasures in this process's memory; no round carries them out."""

from tests.memory.books import MemoryBooks
from tollgate.core.clock import Clock
from tollgate.core.errors import invalid_request
from tollgate.core.ids import IdSource
from tollgate.core.pages import Page
from tollgate.core.records.audit import Actor
from tollgate.core.records.subjects import (
    Erasure,
    LegalHold,
    PrivacySubject,
    check_room,
    refuse_held,
)
from tollgate.stores.ports.subjects import ERASURES_PAGE_MAX
from tollgate.stores.rules.audit_entries import AuditedChange, new_entry
from tollgate.stores.rules.subject_entries import erasure_requested, hold_placed, hold_released


class MemorySubjectStore:
    """Implements `stores.ports.subjects.SubjectStore`."""

    def __init__(self, books: MemoryBooks, ids: IdSource, clock: Clock) -> None:
        self._books = books
        self._ids = ids
        self._clock = clock

    async def holds(self, workspace_id: str) -> tuple[LegalHold, ...]:
        """Return the legal holds of a workspace."""
        found = self._books.legal_holds.values()
        return tuple(held for held in found if held.subject.workspace_id == workspace_id)

    async def hold(self, held: LegalHold, *, by: Actor) -> bool:
        """Place a hold; False if the subject is on hold."""
        if held.subject in self._books.legal_holds:
            return False
        check_room(len(await self.holds(held.subject.workspace_id)), "legal holds")
        self._books.legal_holds[held.subject] = held
        self._note(hold_placed(held), by)
        return True

    async def release(self, held: LegalHold, *, by: Actor) -> bool:
        """Release a hold; False if there is none."""
        found = self._books.legal_holds.pop(held.subject, None)
        if found is not None:
            self._note(hold_released(found), by)
        return found is not None

    async def erasures(
        self, workspace_id: str, *, after: str | None = None, limit: int = ERASURES_PAGE_MAX
    ) -> Page[Erasure]:
        """Return a page of the erasures of a workspace."""
        found = {
            it.subject.place: it
            for it in self._books.erasures.values()
            if it.subject.workspace_id == workspace_id
        }
        names = sorted(name for name in found if after is None or name > after)
        last = names[limit - 1] if len(names) > limit else None
        return Page(found=tuple(found[name] for name in names[:limit]), next=last)

    async def request(self, subject: PrivacySubject, *, by: Actor) -> Erasure:
        """Request an erasure, or return the open one."""
        refuse_held(subject, await self.holds(subject.workspace_id))
        if subject.kind == "member":
            member = self._books.members.get((subject.workspace_id, subject.id))
            if member is None or member.removed_s is None:
                raise invalid_request("Only a member who was removed can be erased.", "id")
        if subject.kind == "workspace":
            wallet = self._books.wallets.get(subject.workspace_id)
            if wallet is None or not wallet.locked:
                raise invalid_request("Only a locked workspace can be erased.", "id")
        if subject not in self._books.erasures:
            check_room(len(self._books.erasures), "open erasures")
            self._books.erasures[subject] = Erasure(
                subject=subject, requested_s=int(self._clock.now_s()), requested_by=by.id
            )
            self._note(erasure_requested(subject), by)
        return self._books.erasures[subject]

    def _note(self, change: AuditedChange, by: Actor) -> None:
        entry = new_entry(change, by, ids=self._ids, clock=self._clock)
        self._books.entries_of_audit.append(entry)
