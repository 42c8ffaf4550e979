"""Sign-in codes in DynamoDB: values by the hash of a code, and counts of calls."""

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
from tollgate.stores.aws.tables import get_item, login_code_key, login_count_key, try_update
from tollgate.stores.ports.people import CodeKind


class DynamoCodeStore:
    """Implements `stores.ports.people.CodeStore` in the core table."""

    def __init__(self, client: AwsCaller, table: str, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._clock = clock

    async def add(self, kind: CodeKind, digest: str, value: bytes, *, lifetime_s: int) -> bool:
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
        with refusing_when_unavailable():
            item = await get_item(self._client, self._table, login_code_key(kind, digest))
            return None if item is None else self._value(item)

    async def replace(
        self, kind: CodeKind, digest: str, old: bytes, new: bytes, *, lifetime_s: int | None
    ) -> bool:
        write = CODE_REPLACE_AND_KEEP if lifetime_s is None else CODE_REPLACE
        values: Item = {
            ":old": binary(old),
            ":new": binary(new),
            ":now": number(self._now_s()),
        }
        names: dict[str, str] = {}
        if lifetime_s is not None:
            values[":ends"] = number(self._now_s() + lifetime_s)
            names = {"#ttl": LoginCodeItem.DELETE_AT}
        parameters = write.build(self._table, login_code_key(kind, digest), values, names)
        with refusing_when_unavailable():
            return await try_update(self._client, parameters)

    async def take(self, kind: CodeKind, digest: str) -> bytes | None:
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
        window = self._now_s() // window_s
        digest = sha256(f"{purpose} {origin} {window}".encode()).hexdigest()
        values = {
            ":zero": number(0),
            ":one": number(1),
            ":most": number(most),
            ":ends": number((window + 1) * window_s),
        }
        names = {"#ttl": LoginCountItem.DELETE_AT}
        parameters = CODE_COUNT.build(self._table, login_count_key(digest), values, names)
        with refusing_when_unavailable():
            return await try_update(self._client, parameters)

    def _value(self, item: Item) -> bytes | None:
        # DynamoDB deletes an item some time after it expires.
        if read_number(item, LoginCodeItem.EXPIRES) <= self._now_s():
            return None
        return read_binary(item, LoginCodeItem.VALUE)

    def _now_s(self) -> int:
        return int(self._clock.now_s())
