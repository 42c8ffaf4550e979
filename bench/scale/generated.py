"""Partitions of any length whose rows are made when they are read, before another store."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import Any, Protocol

from tollgate.stores.aws.attributes import Item
from tollgate.stores.aws.aws_json import ATTEMPTS_MAX, AwsCaller, AwsReply
from tollgate.stores.aws.expressions import ROWS_BETWEEN, ROWS_OF_PARTITION
from tollgate.stores.aws.items import AnyItem

# "Paginating table query results" in the Amazon DynamoDB developer guide (seen 2026-11-23).
_PAGE_BYTES = 1024 * 1024


class Rows(Protocol):
    """The rows of one partition by their place in the order of sort keys."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def sort_key(self, place: int) -> str:
        """Return the sort key of a row."""

    def item(self, place: int) -> Item:
        """Return a row."""


class GeneratedRows:
    """Answers reads of generated partitions, and passes every other call on.

    `rows` are by table and partition. Pages end where DynamoDB ends them: at the limit of the
    query, or at 1 MB.
    """

    def __init__(self, client: AwsCaller, rows: Mapping[tuple[str, str], Rows]) -> None:
        self._client = client
        self._rows = rows

    async def call(
        self, operation: str, payload: Mapping[str, Any], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        """Return the reply to one operation."""
        if operation == "Query":
            partition = payload["ExpressionAttributeValues"][":pk"]["S"]
            if rows := self._rows.get((payload["TableName"], partition)):
                return _query(rows, payload)
        if operation == "GetItem":
            key = payload["Key"]
            place = (payload["TableName"], key[AnyItem.PARTITION]["S"])
            if rows := self._rows.get(place):
                return _get(rows, key[AnyItem.SORT]["S"])
        return await self._client.call(operation, payload, attempts_max=attempts_max)


def _get(rows: Rows, sort_key: str) -> AwsReply:
    place = bisect_left(range(len(rows)), sort_key, key=rows.sort_key)
    if place < len(rows) and rows.sort_key(place) == sort_key:
        return {"Item": rows.item(place)}
    return {}


def _query(rows: Rows, payload: Mapping[str, Any]) -> AwsReply:
    places = range(len(rows))
    values = payload["ExpressionAttributeValues"]
    match payload["KeyConditionExpression"]:
        case condition if condition == ROWS_OF_PARTITION:
            low, high = values[":prefix"]["S"], values[":prefix"]["S"] + "\U0010ffff"
        case condition if condition == ROWS_BETWEEN:
            low, high = values[":low"]["S"], values[":high"]["S"]
        case other:
            raise NotImplementedError(f"no generated rows for {other}")
    first = bisect_left(places, low, key=rows.sort_key)
    end = bisect_right(places, high, key=rows.sort_key)
    forward = payload.get("ScanIndexForward", True)
    if "ExclusiveStartKey" in payload:
        after = payload["ExclusiveStartKey"][AnyItem.SORT]["S"]
        if forward:
            first = max(first, bisect_right(places, after, key=rows.sort_key))
        else:
            end = min(end, bisect_left(places, after, key=rows.sort_key))
    return _page(rows, range(first, end) if forward else range(end - 1, first - 1, -1), payload)


def _page(rows: Rows, places: range, payload: Mapping[str, Any]) -> AwsReply:
    items: list[Item] = []
    taken = 0
    for place in places:
        items.append(rows.item(place))
        taken += item_bytes(items[-1])
        if len(items) == payload.get("Limit") or taken >= _PAGE_BYTES:
            # As DynamoDB does: where the limit ends the page, there may be nothing behind it.
            last = {name: items[-1][name] for name in (AnyItem.PARTITION, AnyItem.SORT)}
            return {"Items": items, "LastEvaluatedKey": last}
    return {"Items": items}


def item_bytes(item: Mapping[str, Any]) -> int:
    """Return the size of an item: "DynamoDB item sizes and formats" in the same guide."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            return len(content.lstrip("-")) // 2 + 2
        case "B":
            return len(content) * 3 // 4
        case "M":
            return 3 + sum(
                1 + len(name.encode()) + _value_bytes(it) for name, it in content.items()
            )
        case "L":
            return 3 + sum(1 + _value_bytes(it) for it in content)
        case _:
            return 1
