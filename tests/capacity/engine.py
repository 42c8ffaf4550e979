"""A DynamoDB in memory that counts units and refuses what a partition cannot take.

It has what the ledger, authentication and the maintenance of workspaces call. Sizes are those of
"DynamoDB item sizes and formats", units those of "DynamoDB read and write operations", both in the
Amazon DynamoDB developer guide (seen 2026-11-23); `test_capacity_engine.py` compares both with
ministack's.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

from tests.capacity.expressions import Names, Path, Value, Values, condition_of, find, update_of
from tests.capacity.partitions import Partitions
from tollgate.aws.attributes import Item
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsReply
from tollgate.aws.failures import (
    CancellationReason,
    ConditionFailed,
    StoreUnavailable,
    TransactionCancelled,
)

_WRITE_UNIT_BYTES = 1_024
_READ_UNIT_BYTES = 4_096
# Between two attempts of a call, as the client waits.
_BACKOFF_S = (0.010, 0.100)
_NO_ITEM: Item = {}
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


class _Throttled(Exception):
    """The partition of a call has no units left at the moment."""


class _Stored:
    """An item and its size, which each change of it keeps up."""

    __slots__ = ("bytes", "item")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.bytes = sum(len(name.encode()) + value_bytes(it) for name, it in item.items())

    def copy(self) -> Item:
        """Return the item as a reply has it: what is changed later does not change the copy."""
        return {
            name: {"M": dict(value["M"])} if "M" in value else value
            for name, value in self.item.items()
        }


class MemoryDynamo:
    """Implements AwsCaller. A call takes `latency_s`; one that is throttled wrote nothing.

    Like the client it asks again up to `attempts_max` times. `calls` counts attempts by operation,
    `units` what they consumed by table.
    """

    def __init__(self, partitions: Partitions, random: Random, *, latency_s: float = 0.004) -> None:
        self.partitions = partitions
        self.units: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.tables: dict[str, dict[tuple[str, str], _Stored]] = {}
        self._random = random
        self.latency_s = latency_s

    async def call(
        self, operation: str, payload: Mapping[str, Any], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        for attempt in range(1, attempts_max + 1):
            await asyncio.sleep(self.latency_s)
            self.calls[operation] += 1
            try:
                reply: AwsReply = getattr(self, _method_of(operation))(payload)
            except _Throttled:
                if attempt == attempts_max:
                    raise StoreUnavailable(
                        f"{operation}: ProvisionedThroughputExceededException", maybe_applied=False
                    ) from None
                await asyncio.sleep(self._random.uniform(*_BACKOFF_S))
            else:
                return reply
        raise AssertionError("attempts_max must be at least 1")

    def _create_table(self, payload: Mapping[str, Any]) -> AwsReply:
        self.tables.setdefault(payload["TableName"], {})
        return {}

    def _put_item(self, payload: Mapping[str, Any]) -> AwsReply:
        key, old = self._find(payload, payload["Item"])
        new = _Stored(dict(payload["Item"]))
        return self._write(payload, key, old, lambda: new)

    def _update_item(self, payload: Mapping[str, Any]) -> AwsReply:
        key, old = self._find(payload, payload["Key"])
        return self._write(payload, key, old, lambda: _updated(old, payload))

    def _delete_item(self, payload: Mapping[str, Any]) -> AwsReply:
        key, old = self._find(payload, payload["Key"])
        return self._write(payload, key, old, lambda: None)

    def _transact_write_items(self, payload: Mapping[str, Any]) -> AwsReply:
        actions = [(kind, action) for it in payload["TransactItems"] for kind, action in it.items()]
        reasons = []
        for _, action in actions:
            _, old = self._find(action, action.get("Key") or action["Item"])
            reasons.append("None" if _holds(action, old) else "ConditionalCheckFailed")
            units = 2 * _units_of(old, _WRITE_UNIT_BYTES)
            partition = (action.get("Key") or action["Item"])["pk"]["S"]
            self._consume("write", action["TableName"], partition, units)
        if any(reason != "None" for reason in reasons):
            raise TransactionCancelled(tuple(CancellationReason(reason) for reason in reasons))
        for kind, action in actions:
            key, old = self._find(action, action.get("Key") or action["Item"])
            rows = self.tables[action["TableName"]]
            if kind == "Put":
                rows[key] = _Stored(dict(action["Item"]))
            elif kind == "Update":
                rows[key] = _updated(old, action)
            elif kind == "Delete":
                rows.pop(key, None)
        return {}

    def _get_item(self, payload: Mapping[str, Any]) -> AwsReply:
        _, stored = self._find(payload, payload["Key"])
        self._read(payload["TableName"], payload["Key"]["pk"]["S"], stored)
        return {} if stored is None else {"Item": stored.copy()}

    def _batch_get_item(self, payload: Mapping[str, Any]) -> AwsReply:
        responses: dict[str, list[Item]] = {}
        unprocessed: dict[str, Any] = {}
        asked = [
            (table, wanted, key)
            for table, wanted in payload["RequestItems"].items()
            for key in wanted["Keys"]
        ]
        for table, wanted, key in asked:
            _, stored = self._find({"TableName": table}, key)
            try:
                self._read(table, key["pk"]["S"], stored)
            except _Throttled:
                kept = unprocessed.setdefault(table, {**wanted, "Keys": []})
                kept["Keys"].append(key)
                continue
            if stored is not None:
                responses.setdefault(table, []).append(stored.copy())
        if sum(len(it["Keys"]) for it in unprocessed.values()) == len(asked):
            raise _Throttled
        return {"Responses": responses, "UnprocessedKeys": unprocessed}

    def _query(self, payload: Mapping[str, Any]) -> AwsReply:
        values: Values = payload["ExpressionAttributeValues"]
        partition = values[":pk"]["S"]
        rows = [
            stored
            for (pk, _), stored in sorted(self.tables[payload["TableName"]].items())
            if pk == partition
            and condition_of(payload["KeyConditionExpression"])(
                stored.item, payload.get("ExpressionAttributeNames", {}), values
            )
        ]
        if not payload.get("ScanIndexForward", True):
            rows.reverse()
        size = sum(stored.bytes for stored in rows)
        self._consume("read", payload["TableName"], partition, max(1, -(-size // _READ_UNIT_BYTES)))
        return {"Items": [stored.copy() for stored in rows]}

    def _scan(self, payload: Mapping[str, Any]) -> AwsReply:
        """Return a whole table: its reads are spread over all partitions, and are not limited."""
        found = [
            stored.copy()
            for stored in self.tables[payload["TableName"]].values()
            if "FilterExpression" not in payload
            or condition_of(payload["FilterExpression"])(
                stored.item,
                payload.get("ExpressionAttributeNames", {}),
                payload.get("ExpressionAttributeValues", {}),
            )
        ]
        return {"Items": found}

    def _find(
        self, payload: Mapping[str, Any], key: Item
    ) -> tuple[tuple[str, str], _Stored | None]:
        place = key["pk"]["S"], key["sk"]["S"]
        return place, self.tables[payload["TableName"]].get(place)

    def _read(self, table: str, partition: str, stored: _Stored | None) -> None:
        """Consume the units of a consistent read of one item."""
        self._consume("read", table, partition, _units_of(stored, _READ_UNIT_BYTES))

    def _write(
        self, payload: Mapping[str, Any], key: tuple[str, str], old: _Stored | None, make: Any
    ) -> AwsReply:
        """Write what `make` returns where the condition holds.

        The larger of both items is what a write consumes, a refused one that of the old item.
        """
        table = payload["TableName"]
        holds = _holds(payload, old)
        before = _units_of(old, _WRITE_UNIT_BYTES)
        # Updated in place: its size is taken before.
        if not holds:
            self._consume("write", table, key[0], before)
            raise ConditionFailed(
                None
                if old is None or "ReturnValuesOnConditionCheckFailure" not in payload
                else old.copy()
            )
        units = max(before, self._units_after(payload, old, before))
        self._consume("write", table, key[0], units)
        new = make()
        if new is None:
            self.tables[table].pop(key, None)
        else:
            self.tables[table][key] = new
        reply: AwsReply = {"ConsumedCapacity": {"TableName": table, "CapacityUnits": float(units)}}
        if payload.get("ReturnValues") == "ALL_NEW":
            reply["Attributes"] = new.copy()
        return reply

    def _units_after(self, payload: Mapping[str, Any], old: _Stored | None, before: int) -> int:
        if "Item" in payload:
            return _units_of(_Stored(payload["Item"]), _WRITE_UNIT_BYTES)
        if "UpdateExpression" not in payload or old is None:
            return before
        grown = sum(_growth(old, *change) for change in _changes(old.item, payload))
        return max(1, -(-(old.bytes + grown) // _WRITE_UNIT_BYTES))

    def _consume(self, kind: str, table: str, partition: str, units: int) -> None:
        if not self.partitions.admits(kind, table, partition, units):
            raise _Throttled
        if kind == "write":
            self.units[table] += units


def _method_of(operation: str) -> str:
    """Return the method that performs an operation: `_put_item` for PutItem."""
    return "_" + _WORD.sub("_", operation).lower()


def value_bytes(value: Value) -> int:
    """Return the size of an attribute's value."""
    kind, content = next(iter(value.items()))
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            # Pairs of digits, without those that are 0 at the end; "0" has none.
            digits = content.lstrip("-")
            zeros = len(digits) - len(digits.rstrip("0"))
            pairs = (len(digits) + 1) // 2 - zeros // 2 if digits != "0" else 0
            return pairs + 1 + content.startswith("-")
        case "B":
            return len(content) * 3 // 4 - content.count("=")
        case "M":
            return 3 + sum(1 + len(name.encode()) + value_bytes(it) for name, it in content.items())
        case "L":
            return 3 + sum(1 + value_bytes(it) for it in content)
        case _:
            return 1


def _units_of(stored: _Stored | None, unit_bytes: int) -> int:
    return 1 if stored is None else max(1, -(-stored.bytes // unit_bytes))


def _holds(payload: Mapping[str, Any], old: _Stored | None) -> bool:
    text = payload.get("ConditionExpression")
    return text is None or condition_of(text)(
        _NO_ITEM if old is None else old.item,
        payload.get("ExpressionAttributeNames", {}),
        payload.get("ExpressionAttributeValues", {}),
    )


def _changes(item: Item, payload: Mapping[str, Any]) -> list[tuple[Path, Value | None]]:
    """Return the new value of each path that an update sets, None for one that it removes.

    All operands are read before anything is set.
    """
    update = update_of(payload["UpdateExpression"])
    names: Names = payload.get("ExpressionAttributeNames", {})
    values: Values = payload.get("ExpressionAttributeValues", {})
    changes = [
        (tuple(names.get(part, part) for part in path), operand(item, names, values))
        for path, operand in update.sets
    ]
    removed = [(tuple(names.get(part, part) for part in path), None) for path in update.removes]
    return [*changes, *removed]


def _growth(stored: _Stored, path: Path, value: Value | None) -> int:
    """Return by how much an item grows if a path gets a value, or loses its own."""
    old = find(stored.item, path, {})
    overhead = len(path[-1].encode()) + (len(path) > 1)
    before = 0 if old is None else overhead + value_bytes(old)
    return (0 if value is None else overhead + value_bytes(value)) - before


def _updated(stored: _Stored | None, payload: Mapping[str, Any]) -> _Stored:
    """Change an item in place, or make it."""
    stored = stored or _Stored(dict(payload["Key"]))
    for path, value in _changes(stored.item, payload):
        stored.bytes += _growth(stored, path, value)
        parent: Any = stored.item
        for part in path[:-1]:
            parent = parent[part]["M"]
        if value is None:
            parent.pop(path[-1], None)
        else:
            parent[path[-1]] = value
    return stored
