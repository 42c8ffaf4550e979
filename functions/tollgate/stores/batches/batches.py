"""The state of batches in DynamoDB: one item each, changed only at the revision that was read."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import json
from msgspec.structs import replace

from tollgate.aws.attributes import Item, binary, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import (
    ConditionFailed,
    StoreUnavailable,
    TransactionCancelled,
    refusing_when_unavailable,
)
from tollgate.core.batches import BATCH_PREFIX, KEPT_DAYS, Batch, BatchClient
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.errors import invalid_request
from tollgate.core.ids import IdSource, is_id
from tollgate.core.ownership import WHOLE_WORKSPACE, OwnerScope
from tollgate.core.pages import Page
from tollgate.stores.aws.decoding import decode_items, read_binary, read_text, reads_an_item
from tollgate.stores.aws.expressions import SAME_REVISION
from tollgate.stores.aws.items import AnyItem, BatchItem, OpenBatchItem
from tollgate.stores.aws.row_ranges import all_rows
from tollgate.stores.aws.tables import get_item, query_rows
from tollgate.stores.aws.transactions import put_if_absent, transact
from tollgate.stores.batches.keys import OPEN_BATCHES, batch_key, batch_partition
from tollgate.stores.ports.batches import BatchPlace

_ROWS: Final = "B#"
# Workers change a batch at the start and at the end of each piece, so conflicts are short.
_CHANGES_MAX: Final = 20
_PAUSE_MAX_S: Final = 0.2
_READ_AT_ONCE: Final = 100
BATCH_PAGE_MAX: Final = 100


class DynamoBatchStore:
    """Implements `stores.ports.batches.BatchStore`."""

    def __init__(self, client: AwsCaller, table: str, *, ids: IdSource, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._ids = ids
        self._clock = clock

    async def create(self, batch: Batch) -> None:
        listed = {
            **batch_key(OPEN_BATCHES, _bare(batch.id)),
            OpenBatchItem.WORKSPACE: string(batch.workspace_id),
        }
        with refusing_when_unavailable():
            await transact(
                self._client,
                self._ids,
                [put_if_absent(self._table, item) for item in (_encode(batch), listed)],
            )

    async def get(self, place: BatchPlace) -> Batch | None:
        if not is_id(_bare(place.batch_id)):
            return None
        with refusing_when_unavailable():
            key = batch_key(batch_partition(place.workspace_id), _bare(place.batch_id))
            item = await get_item(self._client, self._table, key)
            return None if item is None else read_batch(item)

    async def change(
        self, place: BatchPlace, change: Callable[[Batch], Batch | None]
    ) -> Batch | None:
        for _ in range(_CHANGES_MAX):
            stored = await self.get(place)
            changed = None if stored is None else change(stored)
            if stored is None or changed is None or changed is stored:
                return changed
            changed = replace(changed, revision=stored.revision + 1)
            with refusing_when_unavailable():
                if await self._replace(changed, stored.revision):
                    return changed
            await self._clock.sleep(_PAUSE_MAX_S * self._ids.uniform())
        with refusing_when_unavailable():
            raise StoreUnavailable("the batch is changed too often", maybe_applied=False)

    async def delete(self, place: BatchPlace) -> None:
        key = batch_key(batch_partition(place.workspace_id), _bare(place.batch_id))
        with refusing_when_unavailable():
            await self._client.call("DeleteItem", {"TableName": self._table, "Key": key})

    async def page(
        self,
        workspace_id: str,
        *,
        limit: int,
        after: str | None = None,
        reach: OwnerScope = WHOLE_WORKSPACE,
        client: BatchClient = "openai",
    ) -> Page[Batch]:
        if after is not None and not is_id(_bare(after)):
            raise invalid_request("after: must be the id of a batch.", "after")
        start = None if after is None else batch_key(batch_partition(workspace_id), _bare(after))
        limit, found, corrupt = min(limit, BATCH_PAGE_MAX), list[Batch](), list[str]()
        with refusing_when_unavailable():
            while len(found) <= limit:
                rows, start = await query_rows(
                    self._client,
                    self._table,
                    batch_partition(workspace_id),
                    _ROWS,
                    after=start,
                    limit=_READ_AT_ONCE,
                    backwards=True,
                )
                batches, names = decode_items(read_batch, rows)
                found += (
                    batch
                    for batch in batches
                    if batch.client == client and reach.has(batch.member_id)
                )
                corrupt += names
                if start is None:
                    break
        page = tuple(found[:limit])
        following = page[-1].id if len(found) > limit else None
        return Page(found=page, next=following, unreadable=tuple(corrupt))

    async def open_batches(self) -> Sequence[BatchPlace]:
        with refusing_when_unavailable():
            rows = await all_rows(self._client, self._table, OPEN_BATCHES, _ROWS)
        return decode_items(_read_place, rows)[0]

    async def _replace(self, batch: Batch, revision: int) -> bool:
        """Write a batch over the state of a revision; return False if that state has changed."""
        put: dict[str, object] = {
            "TableName": self._table,
            "Item": _encode(batch) | self._expiry(batch),
            "ConditionExpression": SAME_REVISION,
            "ExpressionAttributeValues": {":rev": number(revision)},
        }
        try:
            if batch.is_ended:
                listed = {"TableName": self._table, "Key": batch_key(OPEN_BATCHES, _bare(batch.id))}
                await transact(self._client, self._ids, [{"Put": put}, {"Delete": listed}])
            else:
                await self._client.call("PutItem", put)
        except (ConditionFailed, TransactionCancelled):
            return False
        return True

    def _expiry(self, batch: Batch) -> Item:
        """Return the attribute by which a batch that has ended is deleted with its results."""
        if not batch.is_ended:
            return {}
        kept_s = max(batch.output_expires_s, KEPT_DAYS * DAY_S)
        return {BatchItem.DELETE_AT: number(int(self._clock.now_s()) + kept_s)}


def _encode(batch: Batch) -> Item:
    return {
        **batch_key(batch_partition(batch.workspace_id), _bare(batch.id)),
        BatchItem.STATE: binary(json.encode(batch)),
        BatchItem.REVISION: number(batch.revision),
    }


@reads_an_item
def read_batch(item: Item) -> Batch:
    """Decode a batch; raise CorruptItem if the item is invalid."""
    return json.decode(read_binary(item, BatchItem.STATE), type=Batch)


@reads_an_item
def _read_place(item: Item) -> BatchPlace:
    bare = read_text(item, AnyItem.SORT).removeprefix(_ROWS)
    return BatchPlace(read_text(item, OpenBatchItem.WORKSPACE), BATCH_PREFIX + bare)


def _bare(batch_id: str) -> str:
    return batch_id.removeprefix(BATCH_PREFIX)
