"""Credit of workspaces in DynamoDB: entries that are written once, balances read consistently."""

import zlib
from collections.abc import Sequence
from typing import Final, cast

from tollgate.core.audit import Actor
from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, GatewayError, RequestError
from tollgate.core.ids import IdSource, is_id
from tollgate.core.pages import Page
from tollgate.stores.administration import ENTRIES_PAGE_MAX, Balance, CreditEntry, EntryKind
from tollgate.stores.aws.attributes import Item, number, string
from tollgate.stores.aws.aws_json import AwsCaller
from tollgate.stores.aws.decoding import (
    decode_items,
    read_number,
    read_numbers_by_name,
    read_optional_text,
    read_text,
    reads_an_item,
)
from tollgate.stores.aws.expressions import WALLET_GRANT, WALLET_TAKE
from tollgate.stores.aws.failures import (
    StoreUnavailable,
    TransactionCancelled,
    refusing_when_unavailable,
)
from tollgate.stores.aws.items import (
    AnyItem,
    CreditEntryItem,
    CreditIdItem,
    WalletItem,
    WorkspaceItem,
)
from tollgate.stores.aws.tables import (
    Tables,
    entry_key,
    get_item,
    grant_key,
    query_rows,
    wallet_key,
    workspace_key,
)
from tollgate.stores.aws.transactions import put_if_absent, transact
from tollgate.stores.money.wallets import Wallets
from tollgate.stores.money.workspaces import Workspaces
from tollgate.stores.records.audit_log import AuditWriter
from tollgate.stores.rules.account import too_little_to_take
from tollgate.stores.rules.audit_entries import AuditedChange, CreditChange

_CONDITION_FAILED: Final = "ConditionalCheckFailed"


class DynamoCreditStore:
    """Implements `stores.administration.CreditStore`."""

    def __init__(
        self,
        client: AwsCaller,
        tables: Tables,
        wallets: Wallets,
        workspaces: Workspaces,
        *,
        ids: IdSource,
        clock: Clock,
    ) -> None:
        self._client = client
        self._tables = tables
        self._wallets = wallets
        self._workspaces = workspaces
        self._ids = ids
        self._clock = clock
        self._entries = AuditWriter(tables.core, ids=ids, clock=clock)

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
        """Write an entry once for its id, together with its change of the balance."""
        with refusing_when_unavailable():
            shards = await self._find_shards(entry, by)
            first = zlib.crc32(entry.id.encode())
            refusal: GatewayError | None = None
            for step in range(shards):
                shard = (first + step) % shards
                try:
                    await self._write(entry, shard, by)
                except TransactionCancelled as cancelled:
                    codes = [reason.code for reason in cancelled.reasons]
                    if codes[:1] == [_CONDITION_FAILED]:
                        return False
                    if entry.amount_nano_usd > 0 or codes[-1:] != [_CONDITION_FAILED]:
                        raise StoreUnavailable(str(cancelled), maybe_applied=False) from cancelled
                else:
                    return True
            balance = _balance(await self._wallets.items(entry.workspace_id, shards))
            refusal = too_little_to_take(-entry.amount_nano_usd, balance.available_nano_usd)
        raise refusal

    async def _find_shards(self, entry: CreditEntry, by: Actor) -> int:
        """Return the number of a workspace's shards; added credit creates a missing one."""
        if entry.amount_nano_usd > 0:
            return (await self._workspaces.ensure(entry.workspace_id, by=by)).shards
        workspace = await self._workspaces.read(entry.workspace_id)
        return 0 if workspace is None else workspace.shards

    async def entry(self, workspace_id: str, entry_id: str) -> CreditEntry | None:
        """Return the entry with this id, None if there is none."""
        with refusing_when_unavailable():
            once = await get_item(
                self._client, self._tables.core, grant_key(workspace_id, entry_id)
            )
            if once is None:
                return None
            key = entry_key(workspace_id, read_text(once, CreditIdItem.PLACE))
            item = await get_item(self._client, self._tables.core, key)
            return None if item is None else read_entry(item)

    async def entries(
        self, workspace_id: str, *, after: str | None = None, limit: int = ENTRIES_PAGE_MAX
    ) -> Page[CreditEntry]:
        """Return a page of a workspace's entries, latest first."""
        if after is not None and not is_id(after):
            raise RequestError(ErrorCode.INVALID_REQUEST, "This is no cursor.", param="cursor")
        with refusing_when_unavailable():
            rows, end = await query_rows(
                self._client,
                self._tables.core,
                f"W#{workspace_id}",
                "L#",
                after=None if after is None else entry_key(workspace_id, after),
                limit=limit,
                backwards=True,
            )
        place = None if end is None else read_text(end, AnyItem.SORT).removeprefix("L#")
        entries, unreadable = decode_items(read_entry, rows)
        return Page(found=tuple(entries), next=place, unreadable=tuple(unreadable))

    async def balance(self, workspace_id: str) -> Balance:
        """Return a workspace's money, read consistently; all zero for an unknown workspace."""
        with refusing_when_unavailable():
            workspace = await get_item(self._client, self._tables.core, workspace_key(workspace_id))
            shards = 0 if workspace is None else read_number(workspace, WorkspaceItem.SHARDS)
            return _balance(await self._wallets.items(workspace_id, shards))

    async def _write(self, entry: CreditEntry, shard: int, by: Actor) -> None:
        place = self._ids.new_id()
        once: Item = {**grant_key(entry.workspace_id, entry.id), CreditIdItem.PLACE: string(place)}
        write = WALLET_GRANT if entry.amount_nano_usd > 0 else WALLET_TAKE
        update = {
            "Update": {
                "TableName": self._tables.ledger,
                "Key": wallet_key(entry.workspace_id, shard),
                "UpdateExpression": write.update,
                "ConditionExpression": write.condition,
                "ExpressionAttributeValues": {":x": number(abs(entry.amount_nano_usd))},
            }
        }
        change = AuditedChange(
            action=f"credit.{entry.kind}",
            target=entry.id,
            workspace_id=entry.workspace_id,
            after=change_of(entry),
        )
        actions = (
            # The first put makes the entry single.
            put_if_absent(self._tables.core, once),
            put_if_absent(self._tables.core, entry_item(entry, place)),
            *self._entries.puts(change, by),
            update,
        )
        await transact(self._client, self._ids, actions)


def change_of(entry: CreditEntry) -> CreditChange:
    """Return an entry as the audit log shows it."""
    generation = entry.generation_id and f"gen-{entry.generation_id}"
    return CreditChange(
        amount_nano_usd=entry.amount_nano_usd, note=entry.note or None, generation_id=generation
    )


def entry_item(entry: CreditEntry, place: str) -> Item:
    """Return the item of an entry at its place in the order of time."""
    item: Item = {
        **entry_key(entry.workspace_id, place),
        CreditEntryItem.ID: string(entry.id),
        CreditEntryItem.WORKSPACE: string(entry.workspace_id),
        CreditEntryItem.KIND: string(entry.kind),
        CreditEntryItem.AMOUNT: number(entry.amount_nano_usd),
        CreditEntryItem.NOTE: string(entry.note),
        CreditEntryItem.CREATED: number(entry.created_s),
    }
    if entry.generation_id is not None:
        item[CreditEntryItem.GENERATION] = string(entry.generation_id)
    return item


@reads_an_item
def read_entry(item: Item) -> CreditEntry:
    """Return the entry of an item."""
    return CreditEntry(
        id=read_text(item, CreditEntryItem.ID),
        workspace_id=read_text(item, CreditEntryItem.WORKSPACE),
        # Only `entry_item` writes it.
        kind=cast(EntryKind, read_text(item, CreditEntryItem.KIND)),
        amount_nano_usd=read_number(item, CreditEntryItem.AMOUNT),
        note=read_text(item, CreditEntryItem.NOTE),
        created_s=read_number(item, CreditEntryItem.CREATED),
        generation_id=read_optional_text(item, CreditEntryItem.GENERATION),
    )


def _balance(shards: Sequence[Item]) -> Balance:
    """Return the sums over all shards, each of which is consistent in itself."""
    return Balance(
        granted_nano_usd=sum(read_number(shard, WalletItem.GRANTED) for shard in shards),
        available_nano_usd=sum(read_number(shard, WalletItem.AVAILABLE) for shard in shards),
        held_nano_usd=sum(
            sum(read_numbers_by_name(shard, WalletItem.HOLDS).values()) for shard in shards
        ),
        spent_nano_usd=sum(read_number(shard, WalletItem.SPENT) for shard in shards),
    )
