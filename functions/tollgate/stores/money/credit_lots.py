"""Lots of expiring credit in DynamoDB: one item per workspace, which model requests never read.

The lots are changed in the same transaction as their credit entry, on condition that the revision
is unchanged, so only one of several concurrent writers succeeds.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from tollgate.aws.attributes import Item, number
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import ConditionFailed, StoreUnavailable
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.records.audit import SWEEPER
from tollgate.stores.aws.decoding import read_number, read_numbers_by_name, read_text
from tollgate.stores.aws.expressions import IF_ABSENT, SAME_REVISION
from tollgate.stores.aws.items import AnyItem, WalletItem, WorkspaceItem
from tollgate.stores.aws.tables import Tables, credit_lots_key, get_item, workspace_key
from tollgate.stores.money.credit_items import lots_item, read_lots
from tollgate.stores.money.credit_writes import CreditWriter
from tollgate.stores.money.wallets import Wallets
from tollgate.stores.ports.credit import CreditEntry
from tollgate.stores.rules.credit_lots import (
    LOTS_MAX,
    Lot,
    Lots,
    Sums,
    add_lot,
    allot,
    find_takeable,
    spread,
    take_from_lot,
)

# Maximum number of attempts while other writers change the lots or the shards.
CHANGES_MAX: Final = 5


class CreditLots:
    """The lots of expiring credit of all workspaces."""

    def __init__(
        self, client: AwsCaller, tables: Tables, wallets: Wallets, *, ids: IdSource, clock: Clock
    ) -> None:
        self._client = client
        self._tables = tables
        self._wallets = wallets
        self._clock = clock
        self._writer = CreditWriter(client, tables, ids=ids, clock=clock)

    async def read(self, workspace_id: str) -> Lots:
        """Return the lots as of their last change."""
        item = await get_item(self._client, self._tables.core, credit_lots_key(workspace_id))
        return Lots() if item is None else read_lots(item)

    async def read_sums(self, workspace_id: str, shards: int) -> Sums:
        """Return the sums over the shards, read while no credit moved between shards.

        The shards are not read simultaneously, so a move could be missed or counted twice. If two
        reads return the same grants for every shard, no move happened.
        """
        before = await self._wallets.items(workspace_id, shards)
        for _ in range(CHANGES_MAX):
            after = await self._wallets.items(workspace_id, shards)
            if _granted_by_shard(before) == _granted_by_shard(after):
                return sums_of(after)
            before = after
        raise StoreUnavailable(f"the shards of {workspace_id} keep changing", maybe_applied=False)

    async def plan(self, entry: CreditEntry, shards: int) -> Sequence[object]:
        """Return the action that changes the lots for an entry; no action if no lot changes."""
        if entry.expires_s is None and entry.amount_nano_usd > 0:
            return ()
        lots = await self.read(entry.workspace_id)
        if entry.expires_s is None and not lots.lots:
            return ()
        sums = await self.read_sums(entry.workspace_id, shards)
        granted, spent = sums.granted_nano_usd, sums.spent_nano_usd
        after = allot(lots, granted_nano_usd=granted, spent_nano_usd=spent)
        if entry.expires_s is not None:
            lot = Lot(
                id=entry.id,
                expires_s=entry.expires_s,
                granted_nano_usd=entry.amount_nano_usd,
                left_nano_usd=entry.amount_nano_usd,
            )
            after = add_lot(after, lot)
        granted += entry.amount_nano_usd
        after = allot(after, granted_nano_usd=granted, spent_nano_usd=spent)
        return ({"Put": self._replacing(entry.workspace_id, lots, after)},)

    async def expire(self, workspace_id: str) -> int:
        """Take back expired credit with credit entries; return the number of entries.

        Credit that is still held is left for a later call.
        """
        entries = 0
        # Each expired lot needs one write.
        for _ in range(LOTS_MAX + CHANGES_MAX):
            stored = await self.read(workspace_id)
            now_s = self._clock.now_s()
            workspace = workspace_key(workspace_id)
            if (
                not stored.find_due(now_s)
                or (row := await get_item(self._client, self._tables.core, workspace)) is None
            ):
                return entries
            sums = await self.read_sums(workspace_id, read_number(row, WorkspaceItem.SHARDS))
            lots = allot(
                stored,
                granted_nano_usd=sums.granted_nano_usd,
                spent_nano_usd=sums.spent_nano_usd,
            )
            takeable = find_takeable(lots, sums, now_s)
            if takeable is None:
                await self._forget_spent(workspace_id, stored, lots)
                return entries
            lot, amount = takeable
            entry = CreditEntry(
                id=f"expiry:{lot.id}:{lot.expiries}",
                workspace_id=workspace_id,
                kind="expiry",
                amount_nano_usd=-amount,
                note=f"rest of {lot.id}",
                created_s=int(now_s),
            )
            parts = {
                shard: -part for shard, part in spread(amount, sums.available_nano_usd).items()
            }
            after = take_from_lot(lots, lot.id, amount)
            put = {"Put": self._replacing(workspace_id, stored, after)}
            entries += await self._writer.write(entry, parts, SWEEPER, put) == "written"
        return entries

    async def _forget_spent(self, workspace_id: str, stored: Lots, lots: Lots) -> None:
        """Remove the lots that are used up if any of them has expired."""
        if all(lot.left_nano_usd for lot in lots.find_due(self._clock.now_s())):
            return
        unspent = replace(lots, lots=tuple(lot for lot in lots.lots if lot.left_nano_usd))
        try:
            await self._client.call("PutItem", self._replacing(workspace_id, stored, unspent))
        except ConditionFailed:
            return

    def _replacing(self, workspace_id: str, before: Lots, after: Lots) -> dict[str, object]:
        """Return the PutItem request for new lots, on condition that no other writer was first."""
        new = replace(after, revision=before.revision + 1)
        put: dict[str, object] = {
            "TableName": self._tables.core,
            "Item": lots_item(workspace_id, new),
            "ConditionExpression": SAME_REVISION if before.revision else IF_ABSENT,
        }
        if before.revision:
            put["ExpressionAttributeValues"] = {":rev": number(before.revision)}
        return put


def sums_of(shards: Sequence[Item]) -> Sums:
    """Return the sums over the items of all shards."""
    return Sums(
        granted_nano_usd=sum(read_number(shard, WalletItem.GRANTED) for shard in shards),
        spent_nano_usd=sum(read_number(shard, WalletItem.SPENT) for shard in shards),
        available_nano_usd={
            shard_number(shard): read_number(shard, WalletItem.AVAILABLE) for shard in shards
        },
        holds={
            id_: amount
            for shard in shards
            for id_, amount in read_numbers_by_name(shard, WalletItem.HOLDS).items()
        },
    )


def _granted_by_shard(shards: Sequence[Item]) -> dict[int, int]:
    return {shard_number(shard): read_number(shard, WalletItem.GRANTED) for shard in shards}


def shard_number(item: Item) -> int:
    """Return the number of a wallet shard, from its key."""
    return int(read_text(item, AnyItem.PARTITION).rpartition("#")[2])
