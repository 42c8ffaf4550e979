"""Generation records in DynamoDB, stored as a compressed blob next to attributes for filters."""

import zlib
from collections.abc import AsyncIterator, Sequence
from typing import Final

import msgspec

from tollgate.aws.attributes import Item, binary, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import ConditionFailed, refusing_when_unavailable
from tollgate.core.clock import DAY_S
from tollgate.core.ids import created_s, first_id_of, is_id
from tollgate.core.pages import Page
from tollgate.core.records.activity import GenerationFilter, day_of
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.aws.decoding import decode_items, read_binary, reads_an_item
from tollgate.stores.aws.expressions import IF_ABSENT, ROWS_BETWEEN
from tollgate.stores.aws.record_items import GenerationItem
from tollgate.stores.aws.tables import (
    generation_day,
    generation_key,
    generation_of_sort,
    generation_sort,
    get_item,
    query_rows,
)
from tollgate.stores.records.bills import DynamoBillStore

_COMPRESSION_LEVEL: Final = 6
# Maximum number of queries per call of `page`, which is enough for a month or ten thousand records.
_QUERIES_MAX: Final = 40
_READ_AT_ONCE: Final = 250
_LAST_SECOND: Final = 2**32 - 1
_RECORDS: Final = msgspec.json.Decoder(GenerationRecord)


class DynamoGenerationStore:
    """The records of generations, which expire `retention_s` after the generation began.

    Expired records are read from their `bills`, if bills are stored for longer.
    """

    def __init__(
        self,
        client: AwsCaller,
        table: str,
        *,
        retention_s: int,
        bills: DynamoBillStore | None = None,
    ) -> None:
        self._client = client
        self._table = table
        self._retention_s = retention_s
        self._bills = bills

    async def get(self, workspace_id: str, generation_id: str) -> GenerationRecord | None:
        """Return a record of this workspace with a consistent read, or the bill of an expired one;
        None if there is neither.
        """
        if not is_id(generation_id):
            return None
        with refusing_when_unavailable():
            item = await get_item(
                self._client, self._table, generation_key(workspace_id, generation_id)
            )
            if item is not None:
                return read_record(item)
        return None if self._bills is None else await self._bills.find(workspace_id, generation_id)

    async def page(
        self,
        workspace_id: str,
        wanted: GenerationFilter,
        *,
        limit: int,
        before: str | None = None,
    ) -> Page[GenerationRecord]:
        """Return a page of this workspace's records with ids below `before`, newest first."""
        page_records: list[GenerationRecord] = []
        unreadable: list[str] = []

        def page(following: str | None) -> Page[GenerationRecord]:
            return Page(found=tuple(page_records), next=following, unreadable=tuple(unreadable))

        end_of_time = first_id_of(min(wanted.until_s, _LAST_SECOND))
        high = end_of_time if before is None else min(before, end_of_time)
        low = first_id_of(max(wanted.since_s, 0))
        for _ in range(_QUERIES_MAX):
            if high <= low:
                return page(None)
            floor = max(low, _day_start(high))
            room = limit - len(page_records)
            records, corrupt, end = await self._read(
                workspace_id, floor, high, limit=_READ_AT_ONCE if wanted.narrows else room + 2
            )
            unreadable += corrupt
            passing = [record for record in records if record.id < high and wanted.accepts(record)]
            page_records += passing[:room]
            if len(passing) > room or (len(page_records) == limit and end is not None):
                return page(page_records[-1].id)
            high = floor if end is None else end
        return page(high)

    async def read_day(
        self, workspace_id: str, day: str, *, page_max: int
    ) -> AsyncIterator[Page[GenerationRecord]]:
        """Yield pages of all records for a UTC day (`2026-11-21`), oldest first."""
        partition = generation_day(workspace_id, day)
        after: Item | None = None
        while True:
            with refusing_when_unavailable():
                items, after = await query_rows(
                    self._client, self._table, partition, "G#", after=after, limit=page_max
                )
            records, corrupt = decode_items(read_record, items)
            last = None if after is None else generation_of_sort(after)
            yield Page(found=tuple(records), next=last, unreadable=tuple(corrupt))
            if after is None:
                return

    async def put_bills(self, records: Sequence[GenerationRecord]) -> None:
        """Write the bills of consecutive records of a day, if bills outlive records."""
        if self._bills is not None:
            await self._bills.put(records)

    async def _read(
        self, workspace_id: str, low: str, high: str, *, limit: int
    ) -> tuple[Sequence[GenerationRecord], list[str], str | None]:
        """Return records and bills of expired records on `low`'s day, newest first, the names of
        corrupt items, and the lowest id that was reached; None if it is `low`.
        """
        items, end = await self._query(workspace_id, low, high, limit=limit)
        records, corrupt = decode_items(read_record, items)
        if self._bills is None:
            return records, corrupt, end
        found = await self._bills.page(workspace_id, low, high)
        reached = max(found.low, end or low)
        merged = {each.id: each for each in (*found.bills, *records) if each.id >= reached}
        newest_first = [merged[id_] for id_ in sorted(merged, reverse=True)]
        return newest_first, [*corrupt, *found.unreadable], None if reached == low else reached

    async def _query(
        self, workspace_id: str, low: str, high: str, *, limit: int
    ) -> tuple[list[Item], str | None]:
        """Return records from `low` to `high` on `low`'s day, newest first, and the last id read.

        The id is None if there are no more records on that day.
        """
        with refusing_when_unavailable():
            reply = await self._client.call(
                "Query",
                {
                    "TableName": self._table,
                    "KeyConditionExpression": ROWS_BETWEEN,
                    "ExpressionAttributeValues": {
                        ":pk": string(generation_day(workspace_id, day_of(created_s(low)))),
                        ":low": string(generation_sort(low)),
                        ":high": string(generation_sort(high)),
                    },
                    "ScanIndexForward": False,
                    "ConsistentRead": True,
                    "Limit": limit,
                },
            )
        end: Item | None = reply.get("LastEvaluatedKey")
        return reply["Items"], None if end is None else generation_of_sort(end)

    async def put_if_absent(self, record: GenerationRecord) -> GenerationRecord:
        """Write the record unless the generation has one, and return the stored record.

        Retries are safe. Raises StoreUnavailable if the store cannot be reached.
        """
        try:
            await self._client.call(
                "PutItem",
                {
                    "TableName": self._table,
                    "Item": record_item(record, retention_s=self._retention_s),
                    "ConditionExpression": IF_ABSENT,
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                },
            )
        except ConditionFailed as failed:
            if failed.item is None:
                raise
            return read_record(failed.item)
        return record


def _day_start(high: str) -> str:
    """Return the lowest id on the UTC day just before `high`."""
    second = created_s(high)
    if high == first_id_of(second):
        second -= 1
    return first_id_of(max(second // DAY_S * DAY_S, 0))


def record_item(record: GenerationRecord, *, retention_s: int) -> Item:
    """Return the item for a record; a record with one attempt takes at most 1 KB (one
    write unit).
    """
    item: Item = {
        **generation_key(record.workspace_id, record.id),
        GenerationItem.OUTCOME: string(record.outcome),
        GenerationItem.COST: number(record.cost_nano_usd),
        GenerationItem.KEY: string(record.key_id),
        GenerationItem.DELETE_AT: number(created_s(record.id) + retention_s),
        GenerationItem.BLOB: binary(zlib.compress(msgspec.json.encode(record), _COMPRESSION_LEVEL)),
    }
    if record.model is not None:
        item[GenerationItem.MODEL] = string(record.model)
    if record.provider is not None:
        item[GenerationItem.PROVIDER] = string(record.provider)
    return item


@reads_an_item
def read_record(item: Item) -> GenerationRecord:
    """Decode a record from its blob, which contains all fields."""
    return _RECORDS.decode(zlib.decompress(read_binary(item, GenerationItem.BLOB)))
