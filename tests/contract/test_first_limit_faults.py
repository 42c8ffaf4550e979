"""A team's first limit while a hold is settled, where either write meets a fault.

Keeps C61, C62 and C90. After the faults and a repetition of the call, as its caller would send it,
the team has spent what the generation cost, holds nothing, and the books add up.
"""

from collections.abc import Awaitable, Callable, Mapping

import pytest
from msgspec.structs import replace

from tests.faulty_client import Killed
from tests.stores import TESTER, DynamoStores, dynamo_stores, funded_key, record_of
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsReply
from tollgate.aws.failures import StoreError, StoreUnavailable
from tollgate.core.errors import LedgerError
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.aws.tables import level_state_key
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.base import Hold
from tollgate.stores.rules.level_settings import LevelSettings

ACME, COST, LIMIT = "acme", 20, 2_000
# The partition of the team's state.
STATE = level_state_key("team", ACME, "search")["pk"]["S"]
FAULTS = ["none", "killed before", "killed after", "lost", "twice", "late"]
_Step = Callable[[], Awaitable[object]]


class OneFault:
    """A client whose first write meets a fault; `meanwhile` runs just before the write.

    The write is the first call of an operation that names the team's state.

    A late write has no reply, and lands when `deliver` is called.
    """

    def __init__(
        self, stores: DynamoStores, write: tuple[str, str], fault: str, meanwhile: _Step
    ) -> None:
        self._stores = stores
        self._write = write
        self._fault = fault
        self._meanwhile = meanwhile
        self._late: tuple[str, Mapping[str, object]] | None = None
        self.hits = 0

    async def call(
        self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        named, mark = self._write
        if operation != named or mark not in str(payload) or self.hits:
            return await self._stores.client.call(operation, payload, attempts_max=attempts_max)
        self.hits += 1
        await self._meanwhile()
        match self._fault:
            case "killed before":
                raise Killed
            case "killed after":
                await self._send(operation, payload)
                raise Killed
            case "lost":
                await self._send(operation, payload)
                raise StoreUnavailable("injected", maybe_applied=True)
            case "late":
                self._late = operation, payload
                raise StoreUnavailable("injected", maybe_applied=True)
            case "twice":
                await self._send(operation, payload)
        return await self._stores.client.call(operation, payload, attempts_max=attempts_max)

    async def deliver(self) -> None:
        if self._late is not None:
            await self._send(*self._late)

    async def _send(self, operation: str, payload: Mapping[str, object]) -> None:
        try:
            await self._stores.client.call(operation, payload)
        except StoreError:
            return


async def quietly(step: Awaitable[object]) -> None:
    """Run a step of a process that may die, or whose caller gets an error."""
    try:
        await step
    except (Killed, LedgerError):
        return


async def team_with_an_old_hold(dynamo: DynamoStores, cost: int) -> tuple[Hold, GenerationRecord]:
    """A team without limits, whose state still has a hold from the time with limits."""
    settings = LevelSettings(limits_nano_usd={"day": 1_000})
    await dynamo.teams.create(ACME, "search", settings, by=TESTER)
    key = NewKey(workspace_id=ACME, label="a", team_id="search")
    _, principal = await funded_key(dynamo, 1_000_000, key)
    hold = await dynamo.ledger.hold(principal, 400)
    await dynamo.teams.change(ACME, "search", lambda it: replace(it, limits_nano_usd={}), by=TESTER)
    return hold, replace(record_of(hold, cost), labels=principal.labels)


async def set_first_limit(stores: DynamoStores) -> None:
    limits = {"total": LIMIT}
    await stores.teams.change(
        ACME, "search", lambda it: replace(it, limits_nano_usd=limits), by=TESTER
    )


async def check(dynamo: DynamoStores, cost: int) -> None:
    [team] = (await dynamo.teams.list(ACME)).found
    assert team.spending.held_nano_usd == 0
    assert team.spending.remaining_nano_usd == {"total": LIMIT - cost}
    assert list(await dynamo.audit.run()) == []


@pytest.mark.parametrize("cost", [COST, 0])
@pytest.mark.parametrize("fault", FAULTS)
async def test_c62_c90_a_first_limit_that_meets_a_fault_keeps_the_settlement(
    dynamo: DynamoStores, fault: str, cost: int
) -> None:
    hold, record = await team_with_an_old_hold(dynamo, cost)

    async def settle() -> object:
        return await dynamo.ledger.settle(hold, record)

    # The reads of the change are done, and its transaction is not.
    client = OneFault(dynamo, ("TransactWriteItems", STATE), fault, settle)
    other = dynamo_stores(client, dynamo.tables, dynamo.clock)
    await quietly(set_first_limit(other))
    assert client.hits == 1
    await client.deliver()
    await set_first_limit(dynamo)
    await client.deliver()
    await check(dynamo, cost)


@pytest.mark.parametrize("cost", [COST, 0])
@pytest.mark.parametrize("fault", FAULTS)
async def test_c62_c90_a_settlement_that_meets_a_fault_outlives_the_first_limit(
    dynamo: DynamoStores, fault: str, cost: int
) -> None:
    hold, record = await team_with_an_old_hold(dynamo, cost)

    async def limit() -> None:
        await set_first_limit(dynamo)

    # The record is written, and the team's hold is not yet released.
    client = OneFault(dynamo, ("UpdateItem", STATE), fault, limit)
    other = dynamo_stores(client, dynamo.tables, dynamo.clock)
    await quietly(other.ledger.settle(hold, record))
    assert client.hits == 1
    await client.deliver()
    await dynamo.ledger.settle(hold, record)
    await client.deliver()
    await check(dynamo, cost)
