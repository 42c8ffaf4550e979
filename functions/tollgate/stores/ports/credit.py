"""The credit of workspaces: its entries, its balance, and the protocol of its store."""

from typing import Final, Literal, Protocol

from msgspec import Struct

from tollgate.core.money.statement import UsageGroup
from tollgate.core.pages import Page
from tollgate.core.records.audit import Actor
from tollgate.stores.rules.credit_lots import Lot

# An expiry is always negative. A credit_line entry changes the amount that the operator lends.
EntryKind = Literal["grant", "payment", "adjustment", "refund", "expiry", "credit_line"]
_TAKING: Final = frozenset[EntryKind]({"adjustment", "expiry", "credit_line"})
ENTRIES_PAGE_MAX: Final = 100
REFUND_PREFIX: Final = "refund:"


def refund_id(generation_id: str) -> str:
    """Return the id of the entry that refunds a generation; each generation has one at most."""
    return f"{REFUND_PREFIX}{generation_id}"


class Balance(Struct, frozen=True, kw_only=True):
    """The money of a workspace; `available + held + spent = granted` at any instant."""

    granted_nano_usd: int
    """Nano-dollars granted, including the credit limit."""
    available_nano_usd: int
    held_nano_usd: int
    spent_nano_usd: int
    credit_limit_nano_usd: int = 0
    """The part of `granted` that the operator lends; its used part is due for invoice."""
    lots: tuple[Lot, ...] = ()
    """The remaining amounts of expiring grants, in the order in which they are spent."""

    @property
    def owed_nano_usd(self) -> int:
        """The used part of the credit limit; expiring grants do not pay it back."""
        unspent = self.granted_nano_usd - self.spent_nano_usd
        dated = sum(lot.left_nano_usd for lot in self.lots)
        return max(0, self.credit_limit_nano_usd - (unspent - dated))


class CreditEntry(Struct, frozen=True, kw_only=True):
    """One entry of a workspace's credit ledger, which never changes."""

    id: str
    """The caller's id of the entry, which makes the entry unique."""
    workspace_id: str
    kind: EntryKind
    amount_nano_usd: int
    """Nano-dollars, negative if credit is taken back."""
    note: str
    created_s: int
    generation_id: str | None = None
    """Refunded generation, or None for other kinds of entries."""
    expires_s: int | None = None
    """Unix second at which a grant expires, or None if never."""
    refunded: UsageGroup | None = None
    """Refunded usage, or None for other kinds of entries and for old refunds."""

    def __post_init__(self) -> None:
        if self.amount_nano_usd <= 0 and not (self.kind in _TAKING and self.amount_nano_usd):
            raise ValueError(f"a {self.kind} must be positive")


class CreditStore(Protocol):
    """The credit of all workspaces."""

    async def grant(
        self, workspace_id: str, grant_id: str, amount_nano_usd: int, source: str, *, by: Actor
    ) -> bool:
        """Add credit, once for each grant id; return False if the id was used before."""

    async def enter(self, entry: CreditEntry, *, by: Actor) -> bool:
        """Write an entry, once for each entry id; return False if the id was used before.

        Raise RequestError if the entry would take back more than the available credit.
        """

    async def entry(self, workspace_id: str, entry_id: str) -> CreditEntry | None:
        """Return the entry with this id, or None if there is none."""

    async def entries(
        self, workspace_id: str, *, after: str | None = None, limit: int = ENTRIES_PAGE_MAX
    ) -> Page[CreditEntry]:
        """Return a page of a workspace's entries, latest first; `after` is the `next` of a page."""

    async def balance(self, workspace_id: str) -> Balance:
        """Return a workspace's balance by consistent reads."""

    async def set_credit_limit(self, workspace_id: str, limit_nano_usd: int, *, by: Actor) -> bool:
        """Set the amount that is lent to a workspace; return False if it is already set.

        Raise RequestError if the workspace does not exist or already uses more than the new limit.
        """
