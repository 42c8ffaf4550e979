"""Partitions of any length, with items that are generated when read, in front of another store."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

from bench.scale.rows import Rows, item_bytes
from tollgate.aws.attributes import Item
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsCaller, AwsReply
from tollgate.stores.aws.expressions import HAS_HOLDS, ROWS_BETWEEN, ROWS_OF_PARTITION
from tollgate.stores.aws.items import AnyItem, HoldingItem

# "Paginating table query results" in the Amazon DynamoDB developer guide (seen 2026-11-23).
_PAGE_BYTES = 1024 * 1024
# Field of a filtered scan's reply: the bytes that were read, which DynamoDB bills.
READ_BYTES = "ReadBytes"


class GeneratedRows:
    """A store that answers reads of generated partitions, and passes every other call on.

    `rows` are keyed by table and partition. Pages end as in DynamoDB: at the limit of the query, or
    at 1 MB. Without a client, other partitions are empty, and writes are accepted and lost.
    """

    def __init__(self, client: AwsCaller | None, rows: Mapping[tuple[str, str], Rows]) -> None:
        self._client = client
        self._rows = dict(sorted(rows.items()))

    async def call(
        self, operation: str, payload: Mapping[str, Any], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        """Return the reply to one operation."""
        match operation:
            case "Query":
                partition = payload["ExpressionAttributeValues"][":pk"]["S"]
                if rows := self._rows.get((payload["TableName"], partition)):
                    return _query(rows, payload)
            case "GetItem":
                if item := self._find(payload["TableName"], payload["Key"]):
                    return {"Item": item}
            case "BatchGetItem" if self._client is None:
                return {"Responses": dict(map(self._find_all, payload["RequestItems"].items()))}
            case "Scan" if self._client is None:
                return _scan(self._items(payload), payload)
        if self._client is not None:
            return await self._client.call(operation, payload, attempts_max=attempts_max)
        return {"Items": []} if operation == "Query" else {}

    def _items(self, payload: Mapping[str, Any]) -> Iterator[Item]:
        """Yield the items of a table after the position where a scan continues."""
        after = payload.get("ExclusiveStartKey")
        begin = ("", "") if after is None else tuple(each["S"] for each in after.values())
        for (table, partition), rows in self._rows.items():
            if table == payload["TableName"] and partition >= begin[0]:
                places = range(len(rows))
                if partition == begin[0]:
                    places = places[bisect_right(places, begin[1], key=rows.sort_key) :]
                yield from map(rows.item, places)

    def _find(self, table: str, key: Item) -> Item | None:
        rows = self._rows.get((table, key[AnyItem.PARTITION]["S"]))
        if rows is None:
            return None
        sort_key = key[AnyItem.SORT]["S"]
        place = bisect_left(range(len(rows)), sort_key, key=rows.sort_key)
        exists = place < len(rows) and rows.sort_key(place) == sort_key
        return rows.item(place) if exists else None

    def _find_all(self, wanted: tuple[str, Mapping[str, Any]]) -> tuple[str, list[Item]]:
        table, keys = wanted[0], wanted[1]["Keys"]
        return table, [item for key in keys if (item := self._find(table, key)) is not None]


def _query(rows: Rows, payload: Mapping[str, Any]) -> AwsReply:
    places = range(len(rows))
    values = payload["ExpressionAttributeValues"]
    match payload["KeyConditionExpression"]:
        case condition if condition == ROWS_OF_PARTITION:
            low, high = values[":prefix"]["S"], values[":prefix"]["S"] + "\U0010ffff"
        case condition if condition == ROWS_BETWEEN:
            low, high = values[":low"]["S"], values[":high"]["S"]
        case other:
            raise ValueError(f"no generated rows for {other}")
    first = bisect_left(places, low, key=rows.sort_key)
    end = bisect_right(places, high, key=rows.sort_key)
    forward = payload.get("ScanIndexForward", True)
    if "ExclusiveStartKey" in payload:
        after = payload["ExclusiveStartKey"][AnyItem.SORT]["S"]
        if forward:
            first = max(first, bisect_right(places, after, key=rows.sort_key))
        else:
            end = min(end, bisect_left(places, after, key=rows.sort_key))
    wanted = range(first, end) if forward else range(end - 1, first - 1, -1)
    return _page(map(rows.item, wanted), payload)


def _scan(items: Iterator[Item], payload: Mapping[str, Any]) -> AwsReply:
    """Return a page of a table; the only supported filter is the one for items with holds."""
    reply = _page(items, payload)
    if payload.get("FilterExpression") == HAS_HOLDS:
        items = reply["Items"]
        held = [
            each for each in items if HoldingItem.HOLDS in each and each[HoldingItem.HOLDS]["M"]
        ]
        return {**reply, "Items": held, READ_BYTES: sum(map(item_bytes, items))}
    return reply


def _page(found: Iterator[Item], payload: Mapping[str, Any]) -> AwsReply:
    items: list[Item] = []
    taken = 0
    for item in found:
        items.append(item)
        taken += item_bytes(item)
        if len(items) == payload.get("Limit") or taken >= _PAGE_BYTES:
            # As in DynamoDB, a page that ends at the limit names a next position even if no item
            # follows.
            last = {name: item[name] for name in (AnyItem.PARTITION, AnyItem.SORT)}
            return {"Items": items, "LastEvaluatedKey": last}
    return {"Items": items}
