"""A team's first limit while a hold from an earlier time with limits is settled.

Keeps C61 and C62.
"""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from tests.stores import TESTER, DynamoStores, dynamo_stores, funded_key, record_of
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsReply
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.base import Hold
from tollgate.stores.rules.level_settings import LevelSettings

ACME = "acme"


class _SettlesBeforeTheSeed:
    """A client that settles a hold between a first limit's reads and its transaction."""

    def __init__(self, stores: DynamoStores, hold: Hold, record: GenerationRecord) -> None:
        self._stores = stores
        self._hold = hold
        self._record = record
        self.transactions = 0

    async def call(
        self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        if operation == "TransactWriteItems":
            self.transactions += 1
            if self.transactions == 1:
                await self._stores.ledger.settle(self._hold, self._record)
        return await self._stores.client.call(operation, payload, attempts_max=attempts_max)


# An answer that cost nothing changes the holds of a state, but not what was spent.
@pytest.mark.parametrize("cost", [20, 0])
async def test_a_first_limit_does_not_overwrite_a_hold_that_is_settling(
    dynamo: DynamoStores, cost: int
) -> None:
    await dynamo.teams.create(
        ACME, "search", LevelSettings(limits_nano_usd={"day": 1_000}), by=TESTER
    )
    key = NewKey(workspace_id=ACME, label="a", team_id="search")
    _, principal = await funded_key(dynamo, 1_000_000, key)
    hold = await dynamo.ledger.hold(principal, 400)
    await dynamo.teams.change(ACME, "search", lambda it: replace(it, limits_nano_usd={}), by=TESTER)

    record = replace(record_of(hold, cost), labels=principal.labels)
    client = _SettlesBeforeTheSeed(dynamo, hold, record)
    other_process = dynamo_stores(client, dynamo.tables, dynamo.clock)
    limits = {"total": 2_000}
    team = await other_process.teams.change(
        ACME, "search", lambda it: replace(it, limits_nano_usd=limits), by=TESTER
    )

    assert client.transactions == 2
    assert team is not None
    # A hold that came back would never end: its settlement is done.
    assert team.spending.held_nano_usd == 0
    assert team.spending.remaining_nano_usd == {"total": 2_000 - cost}
    assert list(await dynamo.audit.run()) == []
