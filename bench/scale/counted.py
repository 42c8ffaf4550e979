"""Counts of calls to a store, their units, and the CPU that the caller itself uses."""

from collections import Counter
from collections.abc import Mapping
from time import process_time
from typing import Any

from msgspec import Struct

from bench.scale.generated import READ_BYTES
from bench.scale.rows import item_bytes
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsCaller, AwsReply
from tollgate.aws.failures import StoreError

# "DynamoDB read and write operations" in the Amazon DynamoDB developer guide (seen 2026-11-23).
_READ_UNIT_BYTES = 4096
_WRITE_UNIT_BYTES = 1024


class Cost(Struct, frozen=True, kw_only=True):
    """The cost of one operation of the gateway."""

    calls: int
    items: int
    read_units: float
    write_units: float
    cpu_ms: float


class CountedStore:
    """A store that counts calls and passes them on; `measured` returns the costs in between.

    CPU of the store itself is not counted.
    """

    def __init__(self, client: AwsCaller) -> None:
        self._client = client
        self._start()

    def _start(self) -> None:
        self._counts: Counter[str] = Counter()
        self._read_units = 0.0
        self._began_s = process_time()
        self._away_s = 0.0

    def measured(self) -> Cost:
        """Return the costs since the last call, and start counting from zero."""
        cpu_s = process_time() - self._began_s - self._away_s
        cost = Cost(
            calls=self._counts["calls"],
            items=self._counts["items"],
            read_units=self._read_units,
            write_units=self._counts["write_units"],
            cpu_ms=cpu_s * 1e3,
        )
        self._start()
        return cost

    async def call(
        self, operation: str, payload: Mapping[str, Any], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        """Return the reply to one operation."""
        began_s = process_time()
        self._counts["calls"] += 1
        try:
            reply = await self._client.call(operation, payload, attempts_max=attempts_max)
        except StoreError:
            # DynamoDB bills a write whose condition failed like any other write.
            self._counts["write_units"] += 1
            self._away_s += process_time() - began_s
            raise
        match operation:
            case "Query" | "Scan":
                items = reply["Items"]
                size = reply.get(READ_BYTES, sum(map(item_bytes, items)))
                self._read(len(items), size, consistent=payload.get("ConsistentRead", False))
            case "GetItem":
                self._read_each([reply["Item"]] if "Item" in reply else [{}])
            case "BatchGetItem":
                for found in reply["Responses"].values():
                    self._read_each(found)
            case "PutItem":
                self._counts["write_units"] += _units(item_bytes(payload["Item"]))
            case "UpdateItem" | "DeleteItem":
                # An item of the ledger is smaller than 1 KB, unless it has many holds.
                self._counts["write_units"] += 1
            case "TransactWriteItems":
                # In a transaction, each write counts twice.
                self._counts["write_units"] += 2 * len(payload["TransactItems"])
            case _:
                pass
        self._away_s += process_time() - began_s
        return reply

    def _read_each(self, items: list[Any]) -> None:
        for item in items:
            self._read(len(item) > 0, item_bytes(item), consistent=True)

    def _read(self, items: int, size: int, *, consistent: bool) -> None:
        self._counts["items"] += items
        units = max(1, -(-size // _READ_UNIT_BYTES))
        self._read_units += units if consistent else units / 2


def _units(size: int) -> int:
    return max(1, -(-size // _WRITE_UNIT_BYTES))
