"""Pure rules for lots of expiring credit: the remainder of each lot, and the amounts to take back.

Wallets know nothing about lots. Between two changes, the set of lots is constant, so all spending
in that time is deducted from these lots. The wallet's sums are therefore enough to compute what is
left of each lot.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import created_s
from tollgate.core.money.amounts import usd_text

# Maximum number of lots in a workspace; the item with all lots stays below 16 KB.
LOTS_MAX: Final = 100


class Lot(Struct, frozen=True, kw_only=True):
    """An expiring grant of credit, and what is left of it."""

    id: str
    """Id of the grant."""
    expires_s: int
    """Unix second of expiry; from then on, unspent credit is taken back."""
    granted_nano_usd: int
    left_nano_usd: int
    """Amount that is neither spent nor taken back; held money is included."""
    expiries: int = 0
    """Number of credit entries that took back parts of the lot."""


class Lots(Struct, frozen=True, kw_only=True):
    """The lots of a workspace, as of their last change."""

    spent_nano_usd: int = 0
    """Total spending of the workspace at that change, which is deducted from the lots."""
    lots: tuple[Lot, ...] = ()
    """Lots in the order in which they will be spent."""
    revision: int = 0
    """Number of changes."""

    @property
    def left_nano_usd(self) -> int:
        """Amount that is left in all lots together."""
        return sum(lot.left_nano_usd for lot in self.lots)

    def find_due(self, now_s: float) -> tuple[Lot, ...]:
        """Return the lots that have expired, in the order of expiry."""
        return tuple(lot for lot in self.lots if lot.expires_s <= now_s)


class Sums(Struct, frozen=True, kw_only=True):
    """The sums over all wallet shards of a workspace, and the holds on these shards."""

    granted_nano_usd: int
    spent_nano_usd: int
    available_nano_usd: Mapping[int, int]
    """Available nano-dollars by shard."""
    holds: Mapping[str, int]
    """Held nano-dollars by hold id."""


def allot(lots: Lots, *, granted_nano_usd: int, spent_nano_usd: int) -> Lots:
    """Return the lots after deducting the spending since their last change, in order of expiry.

    If the workspace has less credit than its lots, the difference is deducted too, because credit
    was taken back or answers cost more than their holds.
    """
    spent = max(lots.spent_nano_usd, spent_nano_usd)
    paid = _pay(lots.lots, spent - lots.spent_nano_usd)
    missing = sum(lot.left_nano_usd for lot in paid) - (granted_nano_usd - spent)
    return replace(lots, spent_nano_usd=spent, lots=_pay(paid, max(0, missing)))


def add_lot(lots: Lots, lot: Lot) -> Lots:
    """Add a lot and remove lots that are used up; raise RequestError if there are too many lots."""
    new_lots = (*(old for old in lots.lots if old.left_nano_usd), lot)
    if len(new_lots) > LOTS_MAX:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"A workspace can have at most {LOTS_MAX} unused expiring grants.",
            param="expires_at",
        )
    return replace(
        lots, lots=tuple(sorted(new_lots, key=lambda each_lot: (each_lot.expires_s, each_lot.id)))
    )


def take_from_lot(lots: Lots, lot_id: str, amount_nano_usd: int) -> Lots:
    """Take an amount back from a lot, and remove used-up lots."""
    after = (
        replace(lot, left_nano_usd=lot.left_nano_usd - amount_nano_usd, expiries=lot.expiries + 1)
        if lot.id == lot_id
        else lot
        for lot in lots.lots
    )
    return replace(lots, lots=tuple(lot for lot in after if lot.left_nano_usd))


def find_takeable(lots: Lots, sums: Sums, now_s: float) -> tuple[Lot, int] | None:
    """Return an expired lot and the amount to take back now; None if nothing can be taken back.

    Money that was held before the expiry stays in the lot, because its holds may still spend it.
    Money that was held later is taken back after it is released, because available credit must not
    become negative.
    """
    available = sum(max(0, left) for left in sums.available_nano_usd.values())
    kept_for_holds = 0
    for lot in lots.find_due(now_s):
        held = sum(amount for id_, amount in sums.holds.items() if created_s(id_) < lot.expires_s)
        kept_in_lot = min(lot.left_nano_usd, max(0, held - kept_for_holds))
        kept_for_holds += kept_in_lot
        amount = min(lot.left_nano_usd - kept_in_lot, available)
        if amount > 0:
            return lot, amount
    return None


def spread(amount_nano_usd: int, available_nano_usd: Mapping[int, int]) -> Mapping[int, int]:
    """Divide an amount among shards, the richest shard first; return the part of each shard."""
    parts: dict[int, int] = {}
    for shard in sorted(available_nano_usd, key=lambda shard: (-available_nano_usd[shard], shard)):
        part = min(amount_nano_usd - sum(parts.values()), available_nano_usd[shard])
        if part > 0:
            parts[shard] = part
    return parts


def _pay(lots: Sequence[Lot], amount_nano_usd: int) -> tuple[Lot, ...]:
    paid = []
    for lot in lots:
        part = min(lot.left_nano_usd, amount_nano_usd)
        amount_nano_usd -= part
        paid.append(replace(lot, left_nano_usd=lot.left_nano_usd - part))
    return tuple(paid)


def too_little_to_take(amount_nano_usd: int, available_nano_usd: int) -> RequestError:
    """Return the refusal of an adjustment that would take back money that is spent or held."""
    return RequestError(
        ErrorCode.INVALID_REQUEST,
        f"Only ${usd_text(max(0, available_nano_usd))} of the credit can be taken back, not "
        f"${usd_text(amount_nano_usd)}.",
        param="amount",
    )
