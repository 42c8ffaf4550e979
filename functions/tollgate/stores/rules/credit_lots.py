"""Expiring credit, as lots: how much is left of each, and how much is to be taken back; pure.

The wallet does not know lots. What is spent between two changes of the lots is allotted to the lots
of the first change, so the sums of the wallet determine what is left of each lot.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import created_s

# All lots of a workspace are one item, which stays below 16 KB.
LOTS_MAX: Final = 100


class Lot(Struct, frozen=True, kw_only=True):
    """The rest of an expiring grant."""

    id: str
    """Id of the grant."""
    expires_s: int
    """Unix second from which the rest is taken back."""
    granted_nano_usd: int
    left_nano_usd: int
    """Amount that is neither spent nor taken back, including held money."""
    expiries: int = 0
    """Number of entries that took back parts of the lot."""


class Lots(Struct, frozen=True, kw_only=True):
    """The lots of a workspace, as of their last change."""

    spent_nano_usd: int = 0
    """Nano-dollars that all shards had spent at that change, which the lots reflect."""
    lots: tuple[Lot, ...] = ()
    """Lots in the order in which they are spent."""
    revision: int = 0
    """Number of changes; 0 before the first one."""

    @property
    def left_nano_usd(self) -> int:
        """Sum of what is left of all lots."""
        return sum(lot.left_nano_usd for lot in self.lots)

    def find_due(self, now_s: float) -> tuple[Lot, ...]:
        """Return the lots that have expired, in the order of expiry."""
        return tuple(lot for lot in self.lots if lot.expires_s <= now_s)


class Sums(Struct, frozen=True, kw_only=True):
    """The sums of all shards of a workspace, and their holds."""

    granted_nano_usd: int
    spent_nano_usd: int
    available_nano_usd: Mapping[int, int]
    """Available nano-dollars by shard."""
    holds: Mapping[str, int]
    """Held nano-dollars by hold id."""


def allot(lots: Lots, *, granted_nano_usd: int, spent_nano_usd: int) -> Lots:
    """Return the lots after deducting what was spent since their last change, in order of expiry.

    If all credit that is left of the workspace is less than the sum of the lots, the difference is
    deducted from the lots, too: credit was taken back, or answers cost more than their holds.
    """
    spent = max(lots.spent_nano_usd, spent_nano_usd)
    paid = _pay(lots.lots, spent - lots.spent_nano_usd)
    missing = sum(lot.left_nano_usd for lot in paid) - (granted_nano_usd - spent)
    return replace(lots, spent_nano_usd=spent, lots=_pay(paid, max(0, missing)))


def add_lot(lots: Lots, lot: Lot) -> Lots:
    """Return the lots with one more, without those that are used up.

    Raise RequestError if there are too many.
    """
    new_lots = (*(old for old in lots.lots if old.left_nano_usd), lot)
    if len(new_lots) > LOTS_MAX:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"A workspace has at most {LOTS_MAX} expiring grants that are not used up.",
            param="expires_at",
        )
    return replace(
        lots, lots=tuple(sorted(new_lots, key=lambda each_lot: (each_lot.expires_s, each_lot.id)))
    )


def take_from_lot(lots: Lots, lot_id: str, amount_nano_usd: int) -> Lots:
    """Return the lots after taking an amount back from one, without those that are used up."""
    after = (
        replace(lot, left_nano_usd=lot.left_nano_usd - amount_nano_usd, expiries=lot.expiries + 1)
        if lot.id == lot_id
        else lot
        for lot in lots.lots
    )
    return replace(lots, lots=tuple(lot for lot in after if lot.left_nano_usd))


def find_takeable(lots: Lots, sums: Sums, now_s: float) -> tuple[Lot, int] | None:
    """Return an expired lot and the amount to take back now, None if there is nothing to take.

    Money that was held before the lot expired stays in the lot, because its holds may still spend
    it. Money that was held later is taken back after its release, because available credit never
    falls below zero.
    """
    available = sum(max(0, left) for left in sums.available_nano_usd.values())
    kept_for_holds = 0
    for lot in lots.find_due(now_s):
        held = sum(amount for id_, amount in sums.holds.items() if created_s(id_) < lot.expires_s)
        keeps = min(lot.left_nano_usd, max(0, held - kept_for_holds))
        kept_for_holds += keeps
        amount = min(lot.left_nano_usd - keeps, available)
        if amount > 0:
            return lot, amount
    return None


def spread(amount_nano_usd: int, available_nano_usd: Mapping[int, int]) -> Mapping[int, int]:
    """Return how much of an amount each shard gives, the richest shard first."""
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
