"""Codes of sign-ins in DynamoDB: values by the hash of a code, and counts of calls."""

from hashlib import sha256

from tollgate.aws.attributes import Item, binary, number
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import ConditionFailed, refusing_when_unavailable
from tollgate.core.clock import Clock
from tollgate.stores.aws.decoding import read_binary, read_number
from tollgate.stores.aws.expressions import (
    CODE_COUNT,
    CODE_REPLACE,
    CODE_REPLACE_AND_KEEP,
    IF_PRESENT,
    UNLESS_CURRENT,
)
from tollgate.stores.aws.items import LoginCodeItem, LoginCountItem
from tollgate.stores.aws.tables import get_item, login_code_key, login_count_key
from tollgate.stores.ports.people import CodeKind


class DynamoCodeStore:
    """Implements `stores.ports.people.CodeStore` in the core table."""

    def __init__(self, client: AwsCaller, table: str, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._clock = clock

    async def add(self, kind: CodeKind, digest: str, value: bytes, *, lifetime_s: int) -> bool:
        """Store a value; return False if one exists already."""
        ends_s = self._now_s() + lifetime_s
        item: Item = {
            **login_code_key(kind, digest),
            LoginCodeItem.VALUE: binary(value),
            LoginCodeItem.EXPIRES: number(ends_s),
            LoginCodeItem.DELETE_AT: number(ends_s),
        }
        with refusing_when_unavailable():
            try:
                await self._client.call(
                    "PutItem",
                    {
                        "TableName": self._table,
                        "Item": item,
                        "ConditionExpression": UNLESS_CURRENT,
                        "ExpressionAttributeValues": {":now": number(self._now_s())},
                    },
                )
            except ConditionFailed:
                return False
        return True

    async def read(self, kind: CodeKind, digest: str) -> bytes | None:
        """Return a value, None if it is missing or expired."""
        with refusing_when_unavailable():
            item = await get_item(self._client, self._table, login_code_key(kind, digest))
            return None if item is None else self._value(item)

    async def replace(
        self, kind: CodeKind, digest: str, old: bytes, new: bytes, *, lifetime_s: int | None
    ) -> bool:
        """Replace a value that still equals `old`; return False if it differs."""
        write = CODE_REPLACE_AND_KEEP if lifetime_s is None else CODE_REPLACE
        values: Item = {
            ":old": binary(old),
            ":new": binary(new),
            ":now": number(self._now_s()),
        }
        sent: dict[str, object] = {
            "TableName": self._table,
            "Key": login_code_key(kind, digest),
            "UpdateExpression": write.update,
            "ConditionExpression": write.condition,
            "ExpressionAttributeValues": values,
        }
        if lifetime_s is not None:
            values[":ends"] = number(self._now_s() + lifetime_s)
            sent["ExpressionAttributeNames"] = {"#ttl": LoginCodeItem.DELETE_AT}
        with refusing_when_unavailable():
            try:
                await self._client.call("UpdateItem", sent)
            except ConditionFailed:
                return False
        return True

    async def take(self, kind: CodeKind, digest: str) -> bytes | None:
        """Delete a value and return it; only one caller gets it, any other gets None."""
        with refusing_when_unavailable():
            try:
                reply = await self._client.call(
                    "DeleteItem",
                    {
                        "TableName": self._table,
                        "Key": login_code_key(kind, digest),
                        "ConditionExpression": IF_PRESENT,
                        "ReturnValues": "ALL_OLD",
                    },
                )
            except ConditionFailed:
                return None
            return self._value(reply["Attributes"])

    async def count(self, purpose: str, origin: str, *, window_s: int, most: int) -> bool:
        """Count an address's call in this window; return False once there are more than `most`."""
        window = self._now_s() // window_s
        digest = sha256(f"{purpose} {origin} {window}".encode()).hexdigest()
        with refusing_when_unavailable():
            try:
                await self._client.call(
                    "UpdateItem",
                    {
                        "TableName": self._table,
                        "Key": login_count_key(digest),
                        "UpdateExpression": CODE_COUNT.update,
                        "ConditionExpression": CODE_COUNT.condition,
                        "ExpressionAttributeNames": {"#ttl": LoginCountItem.DELETE_AT},
                        "ExpressionAttributeValues": {
                            ":zero": number(0),
                            ":one": number(1),
                            ":most": number(most),
                            ":ends": number((window + 1) * window_s),
                        },
                    },
                )
            except ConditionFailed:
                return False
        return True

    def _value(self, item: Item) -> bytes | None:
        # DynamoDB deletes an item some time after it expires.
        if read_number(item, LoginCodeItem.EXPIRES) <= self._now_s():
            return None
        return read_binary(item, LoginCodeItem.VALUE)

    def _now_s(self) -> int:
        return int(self._clock.now_s())
