"""A store that is not there, or falls silent: everything refuses, in bounded time (C62).

Keeps C51, C62.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.ministack import free_port, ministack_command, running_ministack
from tests.stores import (
    TESTER,
    DynamoStores,
    HandClock,
    aws_client,
    disable,
    dynamo_stores,
    fresh_tables,
    funded_key,
    record_of,
)
from tollgate.aws.aws_json import AwsReply
from tollgate.aws.failures import StoreUnavailable
from tollgate.core.errors import ErrorCode, LedgerError
from tollgate.core.principal import Principal
from tollgate.core.routing.endpoint_status import CooldownPolicy
from tollgate.stores.aws.tables import Tables, create_tables
from tollgate.stores.keys.secret import new_secret
from tollgate.stores.ports.administration import NewKey


async def test_c62_a_dead_store_refuses_everything_and_admits_nothing() -> None:
    clock = HandClock()
    client = aws_client(f"http://127.0.0.1:{free_port()}", clock=clock)
    stores = dynamo_stores(client, Tables(core="c", ledger="l", generations="g"), clock)
    principal = Principal(key_id="k", workspace_id="acme", role="inference", label="x")

    for refused in (
        stores.ledger.hold(principal, 1),
        stores.keys.authenticate(new_secret("sk-tg-", os.urandom)),
        stores.keys.create(NewKey(workspace_id="acme", label="x"), by=TESTER),
        stores.keys.list("acme"),
        stores.keys.get("acme", "0" * 15),
        disable(stores, "0" * 15),
        stores.keys.rotate("acme", "0" * 15, grace_s=1, by=TESTER),
        stores.keys.delete("acme", "0" * 15, by=TESTER),
        stores.credits.entries("acme"),
        stores.credits.grant("acme", "g", 1, "test", by=TESTER),
        stores.credits.balance("acme"),
        stores.generations.get("acme", "0" * 15),
        stores.sweeper.run(),
    ):
        with pytest.raises(LedgerError) as raised:
            await refused
        assert raised.value.code is ErrorCode.SERVICE_UNAVAILABLE
    await client.close()


async def test_c51_a_dead_store_lets_nothing_rest_and_is_not_asked_again_at_once() -> None:
    clock = HandClock()
    client = CountingDead()
    stores = dynamo_stores(client, Tables(core="c", ledger="l", generations="g"), clock)

    for _ in range(3):
        await stores.cooldowns.count_failure("near/large-1", CooldownPolicy())
    for _ in range(3):
        assert await stores.cooldowns.find_resting(["near/large-1"], CooldownPolicy()) == {}

    assert client.calls == {"UpdateItem": 3, "BatchGetItem": 1}
    clock.now += 5
    await stores.cooldowns.find_resting(["near/large-1"], CooldownPolicy())
    assert client.calls["BatchGetItem"] == 2


async def test_c51_a_slow_store_does_not_keep_a_request_waiting() -> None:
    class Slow:
        async def call(
            self, operation: str, payload: Mapping[str, object], *, attempts_max: int = 3
        ) -> AwsReply:
            await asyncio.Event().wait()
            raise AssertionError("unreachable")

    tables = Tables(core="c", ledger="l", generations="g")
    stores = dynamo_stores(Slow(), tables, HandClock())
    assert await stores.cooldowns.find_resting(["near/large-1"], CooldownPolicy()) == {}


class CountingDead:
    """A store that is away, and counts who asks."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    async def call(
        self, operation: str, payload: Mapping[str, object], *, attempts_max: int = 3
    ) -> AwsReply:
        self.calls[operation] += 1
        raise StoreUnavailable("away", maybe_applied=False)


async def test_c62_a_store_that_hangs_is_given_up_after_a_bounded_number_of_calls() -> None:
    clock = HandClock()

    class Hanging:
        calls = 0

        async def call(
            self, operation: str, payload: Mapping[str, object], *, attempts_max: int = 3
        ) -> AwsReply:
            self.calls += 1
            clock.now += 0.5
            raise StoreUnavailable("timed out", maybe_applied=True)

    client = Hanging()
    stores = dynamo_stores(client, Tables(core="c", ledger="l", generations="g"), clock)
    principal = Principal(key_id="k", workspace_id="acme", role="inference", label="x")

    with pytest.raises(LedgerError):
        await stores.ledger.hold(principal, 1)

    # Two ids of two holds and two releases each: the budget leaves no room for a third.
    assert client.calls == 8


async def test_a_store_that_stops_in_mid_request_leaves_an_error_and_no_charge(
    tmp_path: Path,
) -> None:
    if ministack_command() is None:
        pytest.skip("ministack is not installed: run `make .tools/ministack/stamp`")
    clock = HandClock()
    with running_ministack(tmp_path) as url:
        client = aws_client(url, clock=clock)
        stores = dynamo_stores(client, await fresh_tables(client), clock)
        _, principal = await funded_key(stores, 1_000)
        hold = await stores.ledger.hold(principal, 400)

    with pytest.raises(LedgerError) as raised:
        await stores.ledger.settle(hold, record_of(hold, 150))
    with pytest.raises(LedgerError):
        await stores.ledger.hold(principal, 1)

    assert raised.value.code is ErrorCode.SERVICE_UNAVAILABLE
    await client.close()


async def test_creating_tables_twice_is_no_error(dynamo: DynamoStores) -> None:
    await create_tables(dynamo.client, dynamo.tables)
