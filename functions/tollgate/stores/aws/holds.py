"""Holds in wallets and key states, stored as a map from hold id to amount, and how they are
settled.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from tollgate.aws.attributes import Item
from tollgate.aws.failures import ConditionFailed, StoreUnavailable
from tollgate.stores.aws.decoding import read_numbers_by_name, reads_an_item
from tollgate.stores.aws.items import HoldingItem

# Maximum number of attempts to settle. After the amount has been read, it can change only once
# more, through a top-up whose reply was lost.
_AMOUNTS_MAX: Final = 3
_LOGGER: Final = logging.getLogger(__name__)
_Outcome = TypeVar("_Outcome")


class HoldUnknown(Exception):
    """A hold whose write may have been applied, or may still be applied later.

    `shard` is the wallet shard, or the slice of the state, to which the write was sent.
    """

    def __init__(self, amount_nano_usd: int, unavailable: StoreUnavailable, shard: int = 0) -> None:
        super().__init__(str(unavailable))
        self.amount_nano_usd = amount_nano_usd
        self.shard = shard


async def settle_whatever_is_held(
    settle: Callable[[int], Awaitable[None]], hold_id: str, held_nano_usd: int
) -> None:
    """Call `settle` with the amount that the item holds, until the hold is gone from the item.

    A failed condition means "already settled" only if the hold is gone from the stored item. If the
    item has a different amount under that id, that amount is settled.
    """
    amount = held_nano_usd
    for _ in range(_AMOUNTS_MAX):
        try:
            await settle(amount)
        except ConditionFailed as failed:
            holds = (
                {} if failed.item is None else read_numbers_by_name(failed.item, HoldingItem.HOLDS)
            )
            if hold_id not in holds:
                return
            amount = holds[hold_id]
        else:
            return
    raise StoreUnavailable(f"the amount of hold {hold_id} keeps changing", maybe_applied=False)


def held_by(item: Item | None, hold_id: str) -> int | None:
    """Return the amount of a hold in an item; None if the item does not have the hold."""
    return None if item is None else read_numbers_by_name(item, HoldingItem.HOLDS).get(hold_id)


@reads_an_item
def hold_count(item: Item) -> int:
    """Return the number of holds in an item."""
    return len(item[HoldingItem.HOLDS]["M"])


async def outcome_of(holding: Awaitable[_Outcome]) -> _Outcome | HoldUnknown | StoreUnavailable:
    """Return the result for a side; if its settlement failed, return the exception."""
    try:
        return await holding
    except (HoldUnknown, StoreUnavailable) as failed:
        return failed
