"""Credit that expires, as lots: what is left of each, and what of it is due; pure.

The wallet knows no lots. Whatever is spent between two changes of the lots is allotted to the lots
of the first change, so the sums alone decide what is left of each.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import created_s

# The lots are one item, which stays below 16 KB.
LOTS_MAX: Final = 100


class Lot(Struct, frozen=True, kw_only=True):
    """The rest of a grant that expires."""

    id: str
    """The grant's id."""
    # Unix second from which the rest is taken back.
    expires_s: int
    granted_nano_usd: int
    left_nano_usd: int
    """What is neither spent nor taken back; held money is still in it."""
    expiries: int = 0
    """Entries that have taken back parts of it."""


class Lots(Struct, frozen=True, kw_only=True):
    """The lots of a workspace at their last change."""

    spent_nano_usd: int = 0
    """What all shards had spent by then, which is allotted."""
    lots: tuple[Lot, ...] = ()
    """In the order in which they are spent."""
    revision: int = 0
    """Changes so far; 0 before the first one."""

    @property
    def left_nano_usd(self) -> int:
        """The rest of all lots."""
        return sum(lot.left_nano_usd for lot in self.lots)

    def find_due(self, now_s: float) -> tuple[Lot, ...]:
        """Return the lots that have expired, first the one that expired first."""
        return tuple(lot for lot in self.lots if lot.expires_s <= now_s)


class Sums(Struct, frozen=True, kw_only=True):
    """The sums of all shards of a workspace, and their holds."""

    granted_nano_usd: int
    spent_nano_usd: int
    available_nano_usd: Mapping[int, int]
    """Available nano-dollars by shard."""
    holds: Mapping[str, int]
    """Nano-dollars by the id of the hold."""


def allot(lots: Lots, *, granted_nano_usd: int, spent_nano_usd: int) -> Lots:
    """Return the lots less what was spent since their last change, the first to expire first.

    Where less than their sum is left of the workspace's whole credit, the lots have paid what is
    missing: credit that was taken back, or answers that were dearer than their holds.
    """
    spent = max(lots.spent_nano_usd, spent_nano_usd)
    paid = _pay(lots.lots, spent - lots.spent_nano_usd)
    missing = sum(lot.left_nano_usd for lot in paid) - (granted_nano_usd - spent)
    return replace(lots, spent_nano_usd=spent, lots=_pay(paid, max(0, missing)))


def add_lot(lots: Lots, lot: Lot) -> Lots:
    """Return the lots with one more, without those that are used up.

    Raises RequestError where there are too many.
    """
    found = (*(it for it in lots.lots if it.left_nano_usd), lot)
    if len(found) > LOTS_MAX:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"A workspace has at most {LOTS_MAX} grants that expire and are not used up.",
            param="expires_at",
        )
    return replace(lots, lots=tuple(sorted(found, key=lambda it: (it.expires_s, it.id))))


def take_from_lot(lots: Lots, lot_id: str, amount_nano_usd: int) -> Lots:
    """Return the lots less an amount that is taken back from one, without those that are used
    up."""
    after = (
        replace(lot, left_nano_usd=lot.left_nano_usd - amount_nano_usd, expiries=lot.expiries + 1)
        if lot.id == lot_id
        else lot
        for lot in lots.lots
    )
    return replace(lots, lots=tuple(lot for lot in after if lot.left_nano_usd))


def find_takeable(lots: Lots, sums: Sums, now_s: float) -> tuple[Lot, int] | None:
    """Return an expired lot and the amount to take back now; None if nothing is to be taken.

    What was held before the lot expired stays: its holds may still spend it. What was held later
    waits for its release, because available credit never falls below zero.
    """
    available = sum(max(0, left) for left in sums.available_nano_usd.values())
    kept = 0
    for lot in lots.find_due(now_s):
        held = sum(amount for id_, amount in sums.holds.items() if created_s(id_) < lot.expires_s)
        keeps = min(lot.left_nano_usd, max(0, held - kept))
        kept += keeps
        amount = min(lot.left_nano_usd - keeps, available)
        if amount > 0:
            return lot, amount
    return None


def spread(amount_nano_usd: int, available_nano_usd: Mapping[int, int]) -> Mapping[int, int]:
    """Return what each shard gives of an amount that is available, the richest shard first."""
    parts: dict[int, int] = {}
    for shard in sorted(available_nano_usd, key=lambda it: (-available_nano_usd[it], it)):
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
