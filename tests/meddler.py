"""A client to DynamoDB that tests interfere with, call by call."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.stores import (
    DynamoStores,
    dynamo_stores,
)
from tollgate.aws.attributes import Item
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsCaller, AwsReply
from tollgate.aws.failures import StoreUnavailable
from tollgate.stores.aws.decoding import read_numbers_by_name

Meddle = Callable[[Mapping[str, object]], str]


@dataclass
class Meddler:
    """Passes calls on, except those for which `meddle` says `lose`, `drop` or `refuse`."""

    client: AwsCaller
    meddle: Meddle = lambda payload: "pass"
    sent: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)

    async def call(
        self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        self.sent.append((operation, payload))
        what = self.meddle(payload)
        if what == "lose":
            await self.client.call(operation, payload)
        if what in ("lose", "drop"):
            raise StoreUnavailable(what, maybe_applied=True)
        if what == "refuse":
            raise StoreUnavailable(what, maybe_applied=False)
        return await self.client.call(operation, payload, attempts_max=attempts_max)


def meddled(stores: DynamoStores) -> tuple[Meddler, DynamoStores]:
    """The same tables behind a client that tests interfere with."""
    meddler = Meddler(stores.client)
    return meddler, dynamo_stores(meddler, stores.tables, stores.clock)


def first(what: str, matches: Callable[[Mapping[str, object]], bool]) -> Meddle:
    """Meddle with the first call that matches."""
    done: list[bool] = []

    def meddle(payload: Mapping[str, object]) -> str:
        if done or not matches(payload):
            return "pass"
        done.append(True)
        return what

    return meddle


def is_hold(of: Item) -> Callable[[Mapping[str, object]], bool]:
    return lambda payload: (
        payload.get("Key") == of and "h.#h = :a" in str(payload.get("UpdateExpression"))
    )


async def holds(stores: DynamoStores, key: Item) -> dict[str, int]:
    reply = await stores.client.call(
        "GetItem", {"TableName": stores.tables.ledger, "Key": key, "ConsistentRead": True}
    )
    return read_numbers_by_name(reply["Item"], "h")
