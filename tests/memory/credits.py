"""Credit of workspaces in this process's memory."""

import re
from typing import Final

from tests.memory.books import MemoryBooks, MemoryWallet
from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import IdSource
from tollgate.core.pages import Page
from tollgate.core.records.audit import Actor
from tollgate.stores.money.credit_items import change_of
from tollgate.stores.ports.credit import ENTRIES_PAGE_MAX, Balance, CreditEntry
from tollgate.stores.rules.audit_entries import AuditedChange, new_entry
from tollgate.stores.rules.credit_lots import Lot, Lots, add_lot, allot, too_little_to_take

_PLACE: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


class MemoryCreditStore:
    """Implements `stores.ports.administration.CreditStore`."""

    def __init__(self, books: MemoryBooks, clock: Clock) -> None:
        self._books = books
        self._clock = clock

    async def grant(
        self, workspace_id: str, grant_id: str, amount_nano_usd: int, source: str, *, by: Actor
    ) -> bool:
        """Add credit once for a grant id; False if that id was granted before."""
        return await self.enter(
            CreditEntry(
                id=grant_id,
                workspace_id=workspace_id,
                kind="grant",
                amount_nano_usd=amount_nano_usd,
                note=source,
                created_s=int(self._clock.now_s()),
            ),
            by=by,
        )

    async def enter(self, entry: CreditEntry, *, by: Actor) -> bool:
        """Write an entry once for its id; False if that id was written before."""
        entries = self._books.entries.setdefault(entry.workspace_id, {})
        if entry.id in entries:
            return False
        wallet = self._books.wallets.setdefault(entry.workspace_id, MemoryWallet())
        lots = self._allotted(entry.workspace_id)
        if entry.expires_s is not None:
            lot = Lot(
                id=entry.id,
                expires_s=entry.expires_s,
                granted_nano_usd=entry.amount_nano_usd,
                left_nano_usd=entry.amount_nano_usd,
            )
            lots = add_lot(lots, lot)
        if entry.amount_nano_usd < 0 and wallet.available < -entry.amount_nano_usd:
            raise too_little_to_take(-entry.amount_nano_usd, wallet.available)
        entries[entry.id] = entry
        wallet.granted += entry.amount_nano_usd
        wallet.available += entry.amount_nano_usd
        self._books.lots[entry.workspace_id] = lots
        change = AuditedChange(
            action=f"credit.{entry.kind}",
            target=entry.id,
            workspace_id=entry.workspace_id,
            after=change_of(entry),
        )
        self._books.entries_of_audit.append(
            new_entry(change, by, ids=IdSource(self._clock), clock=self._clock)
        )
        return True

    async def entry(self, workspace_id: str, entry_id: str) -> CreditEntry | None:
        """Return the entry with this id, None if there is none."""
        entries = self._books.entries.get(workspace_id, {})
        return entries.get(entry_id)

    async def entries(
        self, workspace_id: str, *, after: str | None = None, limit: int = ENTRIES_PAGE_MAX
    ) -> Page[CreditEntry]:
        """Return a page of a workspace's entries, latest first."""
        if after is not None and not _PLACE.fullmatch(after):
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "The cursor is not valid.", param="cursor"
            )
        entries = list(self._books.entries.get(workspace_id, {}).values())[::-1]
        start = int(after or 0)
        end = start + limit
        return Page(found=tuple(entries[start:end]), next=str(end) if end < len(entries) else None)

    async def balance(self, workspace_id: str) -> Balance:
        """Return the workspace's money."""
        wallet = self._books.wallets.get(workspace_id, MemoryWallet())
        return Balance(
            granted_nano_usd=wallet.granted,
            available_nano_usd=wallet.available,
            held_nano_usd=sum(wallet.holds.values()),
            spent_nano_usd=wallet.spent,
            credit_limit_nano_usd=self._books.credit_limits.get(workspace_id, 0),
            lots=tuple(it for it in self._allotted(workspace_id).lots if it.left_nano_usd),
        )

    async def set_credit_limit(self, workspace_id: str, limit_nano_usd: int, *, by: Actor) -> bool:
        """Lend a workspace so much; return False if that was lent before."""
        difference = limit_nano_usd - self._books.credit_limits.get(workspace_id, 0)
        if not difference:
            return False
        number = len(self._books.entries.get(workspace_id, {}))
        entry = CreditEntry(
            id=f"credit_line:{number}",
            workspace_id=workspace_id,
            kind="credit_line",
            amount_nano_usd=difference,
            note="",
            created_s=int(self._clock.now_s()),
        )
        await self.enter(entry, by=by)
        self._books.credit_limits[workspace_id] = limit_nano_usd
        return True

    def _allotted(self, workspace_id: str) -> Lots:
        wallet = self._books.wallets.get(workspace_id, MemoryWallet())
        return allot(
            self._books.lots.get(workspace_id, Lots()),
            granted_nano_usd=wallet.granted,
            spent_nano_usd=wallet.spent,
        )
