"""The DynamoDB in memory of `tests/capacity` answers and counts units as ministack does."""

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from tests.capacity.engine import MemoryDynamo
from tests.capacity.partitions import Partitions
from tests.contract.test_counts import LONGEST
from tests.contract.test_workspaces import maintenance
from tests.stores import (
    TESTER,
    HandClock,
    aws_client,
    dynamo_stores,
    fresh_tables,
    funded_key,
    record_of,
)
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsCaller, AwsReply
from tollgate.aws.failures import ConditionFailed
from tollgate.core.errors import AccessError
from tollgate.stores.aws.tables import create_tables
from tollgate.stores.ports.administration import WorkspaceSettings
from tollgate.stores.rules.level_settings import LevelSettings

HOLDS = 100


class Twin:
    """Sends each call to both, and compares what a caller sees and what was consumed."""

    def __init__(self, real: AwsCaller, memory: MemoryDynamo) -> None:
        self._real = real
        self._memory = memory
        self.compared = 0

    async def call(
        self, operation: str, payload: Mapping[str, Any], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        told = {**payload, "ReturnConsumedCapacity": "TOTAL"}
        real = await _outcome(self._real, operation, told)
        memory = await _outcome(self._memory, operation, payload)
        assert _seen(memory) == _seen(real), (operation, payload)
        self.compared += 1
        if isinstance(real, ConditionFailed):
            raise real
        if operation in ("UpdateItem", "PutItem"):
            units = [it["ConsumedCapacity"]["CapacityUnits"] for it in (memory, real)]
            assert units[0] == units[1], (operation, payload)
        return real


async def _outcome(client: AwsCaller, operation: str, payload: Any) -> AwsReply | ConditionFailed:
    try:
        return await client.call(operation, payload)
    except ConditionFailed as failed:
        return failed


def _seen(outcome: AwsReply | ConditionFailed) -> object:
    """Return what a caller reads of a reply; items of several keys come in no order."""
    if isinstance(outcome, ConditionFailed):
        return "refused", outcome.item
    batches = {
        table: sorted(items, key=repr) for table, items in outcome.get("Responses", {}).items()
    }
    return outcome.get("Attributes"), outcome.get("Item"), outcome.get("Items"), batches


@pytest.mark.nightly
async def test_the_ledger_sees_the_same_items_and_units_on_both(honest_url: str) -> None:
    clock = HandClock()
    real = aws_client(honest_url, clock=clock, timeout_s=10.0)
    memory = MemoryDynamo(Partitions(clock.monotonic_s), Random(7), latency_s=0)
    tables = await fresh_tables(real)
    await create_tables(memory, tables)
    twin = Twin(real, memory)
    stores = dynamo_stores(twin, tables, clock)
    await stores.workspaces.create("acme", WorkspaceSettings(), by=TESTER)
    team = LevelSettings(limits_nano_usd={"day": 10**12}, concurrency=HOLDS - 1)
    await stores.teams.create("acme", "search", team, by=TESTER)
    new = replace(LONGEST, workspace_id="acme", team_id="search")
    secret, _ = await funded_key(stores, 10**11, new)

    for _ in range(2):
        principal = await stores.keys.authenticate(secret)
        held = [await stores.ledger.hold(principal, 10**8, tokens=1_000) for _ in range(HOLDS - 1)]
        with pytest.raises(AccessError, match="99 requests at a time"):
            await stores.ledger.hold(principal, 10**8, tokens=1_000)
        for place, hold in enumerate(held):
            await stores.ledger.settle(hold, record_of(hold, 7 * place))
        await maintenance(stores).run()
        clock.now += 86_400
    await stores.sweeper.run()
    assert await stores.audit.run() == []

    assert twin.compared > 10 * HOLDS
    await real.close()
