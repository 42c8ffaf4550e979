"""The map of holds by id that wallets and key states have, settled under a condition."""

from collections.abc import Awaitable, Callable
from typing import Final

from tollgate.stores.aws.attributes import Item
from tollgate.stores.aws.decoding import read_numbers_by_name, reads_an_item
from tollgate.stores.aws.failures import ConditionFailed, StoreUnavailable
from tollgate.stores.aws.items import HoldingItem

# A hold's amount changes at most once after it is known: by a write whose reply was lost.
_AMOUNTS_MAX: Final = 3


class HoldUnknown(Exception):
    """A hold whose write may have landed, or may still land.

    `shard` is that of the wallet, or the slice of the state, that it was written to.
    """

    def __init__(self, amount_nano_usd: int, unavailable: StoreUnavailable, shard: int = 0) -> None:
        super().__init__(str(unavailable))
        self.amount_nano_usd = amount_nano_usd
        self.shard = shard


async def settle_whatever_is_held(
    settle: Callable[[int], Awaitable[None]], hold_id: str, held_nano_usd: int
) -> None:
    """Call `settle` with the amount that is really held, until the item has no such hold.

    A failed condition means "settled already" only where the stored item lacks the hold; where it
    has another amount, that one is settled.
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
    """Return the amount of a hold in an item, None if the item has no such hold."""
    return None if item is None else read_numbers_by_name(item, HoldingItem.HOLDS).get(hold_id)


@reads_an_item
def hold_count(item: Item) -> int:
    """Return the number of holds in an item."""
    return len(item[HoldingItem.HOLDS]["M"])
