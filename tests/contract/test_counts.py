"""The units of DynamoDB that a generation costs, and its sequential round trips.

Keeps C62.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from typing_extensions import override

from tests.asgi import request
from tests.gateways import app_over_stores, house, request_body
from tests.metered import Metered
from tests.scripted import Scripted, answers
from tests.stores import (
    DynamoStores,
    HandClock,
    aws_client,
    dynamo_stores,
    fresh_tables,
    funded_key,
    record_of,
)
from tollgate.aws.attributes import string
from tollgate.aws.objects import FolderObjects
from tollgate.providers.ports.base import Frame, Timeouts, WireRequest
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.records.kept_answers import DynamoAnswerStore

# The longest name and every limit: no state of a key has more attributes.
LONGEST = NewKey(
    workspace_id="w" * 63,
    label="test",
    requests_per_minute=60_000,
    burst=1_000,
    tokens_per_minute=10**9,
    concurrency=1_000,
    limits_nano_usd={"day": 10**15, "week": 10**15, "month": 10**15, "total": 10**15},
)
IN_FLIGHT = 20


@pytest.fixture
async def metered(honest_url: str) -> AsyncIterator[tuple[Metered, DynamoStores]]:
    clock = HandClock()
    client = aws_client(honest_url, clock=clock, timeout_s=10.0)
    meter = Metered(client)
    yield meter, dynamo_stores(meter, await fresh_tables(client), clock)
    await client.close()


class Watching(Scripted):
    """Notes how many rounds had been answered at each call."""

    def __init__(self, meter: Metered) -> None:
        super().__init__(answers("Hello"))
        self.rounds_before: list[int] = []
        self._meter = meter

    @override
    @asynccontextmanager
    async def open(
        self, request: WireRequest, timeouts: Timeouts
    ) -> AsyncIterator[AsyncIterator[Frame]]:
        self.rounds_before.append(len(self._meter.rounds))
        async with super().open(request, timeouts) as frames:
            yield frames


@pytest.mark.parametrize("in_flight", [0, IN_FLIGHT])
async def test_an_ordinary_generation_is_five_write_units_and_no_read(
    metered: tuple[Metered, DynamoStores], in_flight: int
) -> None:
    meter, stores = metered
    _, principal = await funded_key(stores, 10**15, LONGEST)
    # From the second hold on the bucket of the rate is busy, and the last reply has said so.
    for _ in range(1 + in_flight):
        await stores.ledger.hold(principal, 10**9, tokens=1_000)
    meter.reset()

    hold = await stores.ledger.hold(principal, 10**9, tokens=1_000)
    await stores.ledger.settle(hold, record_of(hold, 5))

    assert meter.rounds == [["UpdateItem"] * 2, ["PutItem"], ["UpdateItem"] * 2]
    assert (meter.write_units, meter.conditions_failed, meter.reads) == (5, 0, [])


async def test_the_meter_counts_an_item_by_its_kilobytes_and_a_transaction_twice(
    metered: tuple[Metered, DynamoStores],
) -> None:
    meter, stores = metered
    put = {
        "TableName": stores.tables.core,
        "Item": {"pk": string("a"), "sk": string("b"), "x": string("x" * 1_100)},
    }
    await meter.call("PutItem", put)
    assert meter.write_units == 2
    await meter.call(
        "UpdateItem",
        {
            "TableName": stores.tables.core,
            "Key": {"pk": string("a"), "sk": string("b")},
            "UpdateExpression": "REMOVE x",
        },
    )
    # An update costs what the larger of the item before and after it does.
    assert meter.write_units == 4
    await meter.call("TransactWriteItems", {"TransactItems": [{"Put": put}]})
    assert meter.write_units == 8
    meter.reset()
    await asyncio.gather(*(meter.call("PutItem", put) for _ in range(3)))
    assert len(meter.rounds) == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("acme/small", ["UpdateItem", "UpdateItem"]),
        # Which of several endpoints rest is read meanwhile.
        ("acme/large", ["BatchGetItem", "UpdateItem", "UpdateItem"]),
    ],
)
async def test_one_round_trip_before_the_first_token_and_two_after_the_last(
    metered: tuple[Metered, DynamoStores], name: str, before: list[str], stream: bool
) -> None:
    meter, stores = metered
    secret, _ = await funded_key(stores, 10**12, replace(LONGEST, workspace_id="acme"))
    near = Watching(meter)
    home = await house(near=near, far=near)
    app = app_over_stores(home, stores)
    asked: dict[str, Any] = {
        "headers": {"authorization": f"Bearer {secret}"},
        "body": request_body(name, stream=stream),
    }
    first = await request(app, "POST", "/v1/chat/completions", **asked)
    assert first.status == 200
    # Everything that was read is forgotten by now, except the key.
    stores.clock.now += 5
    await stores.keys.authenticate(secret)
    meter.reset()

    answer = await request(app, "POST", "/v1/chat/completions", **asked)

    assert (answer.status, answer.complete) == (200, True)
    assert near.rounds_before[-1] == 1
    assert [sorted(round_) for round_ in meter.rounds] == [
        before,
        ["PutItem"],
        ["UpdateItem", "UpdateItem"],
    ]
    assert (meter.write_units, meter.conditions_failed) == (5, 0)


async def test_c68_a_claim_is_one_more_round_trip_and_an_answer_that_is_kept_holds_nothing(
    metered: tuple[Metered, DynamoStores], tmp_path: Path
) -> None:
    meter, stores = metered
    secret, _ = await funded_key(stores, 10**12, replace(LONGEST, workspace_id="acme"))
    near = Watching(meter)
    home = await house(near=near)
    kept = DynamoAnswerStore(meter, stores.tables.core, FolderObjects(tmp_path), clock=stores.clock)
    app = app_over_stores(home, stores, answers=kept)
    await stores.keys.authenticate(secret)

    made = [["PutItem"], ["UpdateItem"] * 2, ["PutItem"], ["UpdateItem"] * 2, ["UpdateItem"]]
    for replayed, rounds, units in ((None, made, 7), ("true", [["PutItem"]], 0)):
        meter.reset()
        answer = await request(
            app,
            "POST",
            "/v1/chat/completions",
            headers={"authorization": f"Bearer {secret}", "idempotency-key": "once"},
            body=request_body("acme/small"),
        )
        assert (answer.status, answer.headers.get("x-idempotent-replay")) == (200, replayed)
        assert meter.rounds == rounds
        # The engines do not say what a failed condition costs; DynamoDB counts it as a write.
        assert (meter.write_units, meter.conditions_failed) == (units, len(rounds) == 1)
    assert near.rounds_before == [2]
