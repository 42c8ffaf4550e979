"""The map of holds by id that wallets and key states have, settled under a condition."""

from collections.abc import Awaitable, Callable
from typing import Final

from tollgate.core.clock import Clock
from tollgate.stores.aws.attributes import Item
from tollgate.stores.aws.decoding import read_numbers_by_name, reads_an_item
from tollgate.stores.aws.failures import (
    ConditionFailed,
    CorruptItem,
    StoreRejected,
    StoreUnavailable,
)
from tollgate.stores.aws.items import HoldingItem

# A hold's amount changes at most once after it is known: by a write whose reply was lost.
_AMOUNTS_MAX: Final = 3
# A settlement that the store refuses for now is sent again for so long. What is left to the sweeper
# keeps its item long, and each write of it dear, for a quarter of an hour.
_SETTLING_S: Final = 3.0
_PAUSE_MIN_S: Final = 0.2
_PAUSE_MAX_S: Final = 1.0


class HoldUnknown(Exception):
    """A hold whose write may have landed, or may still land."""

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


async def settle_while_refused(
    settle: Callable[[], Awaitable[None]], clock: Clock, *, jitter: Callable[[], float]
) -> None:
    """Call `settle` until the store takes it; raise StoreUnavailable where it does not in time.

    Only a refusal for now, as DynamoDB's throttling is one, is worth another try.
    """
    give_up_s = clock.monotonic_s() + _SETTLING_S
    pause_s = _PAUSE_MIN_S
    while True:
        try:
            return await settle()
        except (StoreRejected, CorruptItem):
            raise
        except StoreUnavailable as unavailable:
            wait_s = pause_s * jitter()
            if unavailable.maybe_applied or clock.monotonic_s() + wait_s > give_up_s:
                raise
        await clock.sleep(wait_s)
        pause_s = min(2 * pause_s, _PAUSE_MAX_S)


def held_by(item: Item | None, hold_id: str) -> int | None:
    """Return the amount of a hold in an item, None if the item has no such hold."""
    return None if item is None else read_numbers_by_name(item, HoldingItem.HOLDS).get(hold_id)


@reads_an_item
def hold_count(item: Item) -> int:
    """Return the number of holds in an item."""
    return len(item[HoldingItem.HOLDS]["M"])
