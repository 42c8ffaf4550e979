"""The sweeper, which writes records for the expired holds of killed processes and settles these
holds.

Other writers may run at the same time: an existing record wins, and every settlement is applied
only once. The lifetime of holds only determines how long credit stays locked.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Final

from msgspec import Struct

from tollgate.aws.attributes import Item, number
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import StoreUnavailable, refusing_when_unavailable
from tollgate.core.clock import Clock
from tollgate.core.ids import created_s
from tollgate.stores.aws.decoding import (
    decode_items,
    read_numbers_by_name,
    read_optional_text,
    read_text,
    reads_an_item,
)
from tollgate.stores.aws.expressions import HAS_HOLDS, HOLDS_PROJECTION
from tollgate.stores.aws.items import AnyItem, HoldingItem, KeyStateItem
from tollgate.stores.aws.tables import owner_of_state
from tollgate.stores.keys.states import KeyStates
from tollgate.stores.money.wallets import Wallets
from tollgate.stores.records.generations import DynamoGenerationStore
from tollgate.stores.rules.quotas import use_of
from tollgate.stores.rules.sweep import (
    ExpiredHold,
    StateHolds,
    SweepReport,
    WalletHolds,
    crowded_levels,
    expired_holds,
    lost_record,
    pays,
    without_holds,
)

_log = logging.getLogger(__name__)

_AT_ONCE_MAX: Final = 16


class Sweeper(Struct, frozen=True):
    """Scans the whole ledger table for holds; concurrent runs are safe but unnecessary."""

    client: AwsCaller
    table: str
    wallets: Wallets
    keys: KeyStates
    generations: DynamoGenerationStore
    clock: Clock
    find_waiting: Callable[[], Awaitable[Collection[str]]]
    """Finds the holds for which providers' batches run; these holds never expire."""

    async def run(self) -> SweepReport:
        """Settle expired holds; raise LedgerError(service_unavailable) if the scan fails."""
        with refusing_when_unavailable():
            items = [item async for item in self._items_with_holds()]
        now_s = self.clock.now_s()
        crowded = crowded_levels(items)
        if expired_holds(items, now_s):
            # These holds are read after the items: a hold that is in neither is settled.
            waiting = await self.find_waiting()
            items = [without_holds(item, waiting) for item in items]
        expired = expired_holds(items, now_s)
        slots = asyncio.Semaphore(_AT_ONCE_MAX)
        settled = await asyncio.gather(*(self._expire(hold, slots) for hold in expired))
        oldest_s = min((created_s(id_) for item in items for id_ in item.holds), default=now_s)
        return SweepReport(
            found=len(expired),
            settled=sum(settled),
            oldest_age_s=max(0.0, now_s - oldest_s),
            crowded=crowded,
        )

    async def _expire(self, expired: ExpiredHold, slots: asyncio.Semaphore) -> bool:
        """Settle one hold by its record; return False if the hold has to wait for the next run."""
        async with slots:
            try:
                record = await self.generations.put_if_absent(lost_record(expired))
                for wallet in expired.wallets:
                    paid_here = wallet.shard == record.shard
                    await self.wallets.settle(
                        expired.workspace_id,
                        wallet.shard,
                        expired.id,
                        held_nano_usd=wallet.holds[expired.id],
                        cost_nano_usd=record.cost_nano_usd if paid_here else 0,
                    )
                for state in expired.states:
                    await self.keys.settle(
                        state.owner,
                        expired.id,
                        held_nano_usd=state.holds[expired.id],
                        cost_nano_usd=record.cost_nano_usd if pays(record, state.owner) else 0,
                        use=use_of(record),
                    )
            except StoreUnavailable as unavailable:
                _log.warning("hold %s could not be expired: %s", expired.id, unavailable)
                return False
        return True

    async def _items_with_holds(self) -> AsyncIterator[WalletHolds | StateHolds]:
        scan: dict[str, object] = {
            "TableName": self.table,
            "ConsistentRead": True,
            "FilterExpression": HAS_HOLDS,
            "ProjectionExpression": HOLDS_PROJECTION,
            "ExpressionAttributeValues": {":zero": number(0)},
        }
        while True:
            reply = await self.client.call("Scan", scan)
            # Corrupt items are logged by the decoder; the audit reports them too.
            readable, _ = decode_items(_read_holds, reply["Items"])
            for item in readable:
                yield item
            if "LastEvaluatedKey" not in reply:
                return
            scan["ExclusiveStartKey"] = reply["LastEvaluatedKey"]


@reads_an_item
def _read_holds(item: Item) -> WalletHolds | StateHolds:
    """Decode the holds in a ledger item: a wallet shard, or the state of a key or level."""
    partition = read_text(item, AnyItem.PARTITION)
    holds = read_numbers_by_name(item, HoldingItem.HOLDS)
    for hold_id in holds:
        created_s(hold_id)
    # Only states have this attribute.
    workspace_id = read_optional_text(item, KeyStateItem.WORKSPACE)
    if workspace_id is not None:
        return StateHolds(owner=owner_of_state(partition, workspace_id), holds=holds)
    workspace_id, _, shard = partition.partition("#")[2].rpartition("#")
    return WalletHolds(workspace_id=workspace_id, shard=int(shard), holds=holds)
