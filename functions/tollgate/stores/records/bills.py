"""Bills of past days in DynamoDB, which outlive the records of their generations.

The roll-up that closes a day writes its bills, many in one item: DynamoDB bills a write by the
kilobyte, and compression removes what bills have in common.
"""

import zlib
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tollgate.aws.attributes import Item, binary, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import refusing_when_unavailable
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.ids import created_s
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.aws.decoding import decode_items, read_binary, read_text, reads_an_item
from tollgate.stores.aws.expressions import ROWS_BETWEEN
from tollgate.stores.aws.record_items import BillsItem
from tollgate.stores.rules.bills import bill_of
from tollgate.stores.rules.periods import day_name

# Records live for at least this time, so no bills of younger generations are read.
_RECORDS_LIVE_DAYS: Final = 30
_BILLS_AT_ONCE: Final = 250
# DynamoDB stores at most 400 KB in an item.
_ITEM_BYTES_MAX: Final = 300_000
_COMPRESSION_LEVEL: Final = 9
_BILLS: Final = msgspec.json.Decoder(tuple[GenerationRecord, ...])


class FoundBills(Struct, frozen=True, kw_only=True):
    """The bills in a range of ids."""

    bills: tuple[GenerationRecord, ...] = ()
    low: str
    """The lowest id up to which all bills of the range were read."""
    unreadable: tuple[str, ...] = ()
    """The names of corrupt items."""


class DynamoBillStore:
    """The bills of closed days, which expire `retention_s` after their day."""

    def __init__(self, client: AwsCaller, table: str, *, retention_s: int, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._retention_s = retention_s
        self._clock = clock

    async def put(self, records: Sequence[GenerationRecord]) -> None:
        """Write the bills of consecutive records of one workspace and day, replacing those that an
        earlier call wrote.
        """
        for start in range(0, len(records), _BILLS_AT_ONCE):
            for item in self._items(records[start : start + _BILLS_AT_ONCE]):
                await self._client.call("PutItem", {"TableName": self._table, "Item": item})

    def _items(self, records: Sequence[GenerationRecord]) -> Iterator[Item]:
        """Yield the item with the bills of some records, or more items if it is too large."""
        blob = zlib.compress(msgspec.json.encode(list(map(bill_of, records))), _COMPRESSION_LEVEL)
        if len(blob) > _ITEM_BYTES_MAX and len(records) > 1:
            half = len(records) // 2
            yield from self._items(records[:half])
            yield from self._items(records[half:])
            return
        first = records[0]
        day_end_s = created_s(first.id) // DAY_S * DAY_S + DAY_S
        yield {
            BillsItem.PARTITION: string(_day(first.workspace_id, first.id)),
            BillsItem.SORT: string(_sort(first.id)),
            BillsItem.BLOB: binary(blob),
            BillsItem.DELETE_AT: number(day_end_s + self._retention_s),
        }

    async def find(self, workspace_id: str, generation_id: str) -> GenerationRecord | None:
        """Return the bill of a generation; None if none is stored, or if the record still lives."""
        # An item has the sort key of its first bill, so only the last item up to this sort key can
        # contain the generation.
        found = await self._newest(workspace_id, generation_id, _sort(generation_id))
        return next((bill for bill in found.bills if bill.id == generation_id), None)

    async def page(self, workspace_id: str, low: str, high: str) -> FoundBills:
        """Return the newest bills with ids in [low, high), which is a part of one day."""
        found = await self._newest(workspace_id, low, _below(high))
        bills = tuple(bill for bill in found.bills if low <= bill.id < high)
        return replace(found, bills=bills, low=max(low, found.low))

    async def _newest(self, workspace_id: str, low: str, high_sort: str) -> FoundBills:
        """Return the item with the newest bills on the day of `low`, up to a sort key."""
        if created_s(low) > self._clock.now_s() - _RECORDS_LIVE_DAYS * DAY_S:
            return FoundBills(low=low)
        query = {
            "TableName": self._table,
            "KeyConditionExpression": ROWS_BETWEEN,
            "ExpressionAttributeValues": {
                ":pk": string(_day(workspace_id, low)),
                ":low": string(_below("")),
                ":high": string(high_sort),
            },
            "ScanIndexForward": False,
            "Limit": 1,
        }
        with refusing_when_unavailable():
            items = (await self._client.call("Query", query))["Items"]
        if not items:
            return FoundBills(low=low)
        decoded, unreadable = decode_items(_read_bills, items)
        return FoundBills(
            bills=tuple(bill for bills in decoded for bill in bills),
            low=_first(items[0]),
            unreadable=tuple(unreadable),
        )


@reads_an_item
def _read_bills(item: Item) -> tuple[GenerationRecord, ...]:
    return _BILLS.decode(zlib.decompress(read_binary(item, BillsItem.BLOB)))


def _day(workspace_id: str, generation_id: str) -> str:
    """Return the partition of the bills of a generation's UTC day."""
    return f"Y#{workspace_id}#{day_name(created_s(generation_id))}"


def _sort(generation_id: str) -> str:
    """Return the sort key of the item whose first bill is this generation's."""
    return f"{_below(generation_id)}#"


def _below(generation_id: str) -> str:
    """Return the highest sort key below the item whose first bill is this generation's."""
    return f"B#{generation_id}"


def _first(item: Item) -> str:
    """Return the id of the first generation in an item."""
    return read_text(item, BillsItem.SORT).removeprefix("B#").removesuffix("#")
