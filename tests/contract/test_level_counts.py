"""The units of DynamoDB and the round trips that a member and a team add to a generation.

Keeps C61 and C62.
"""

import asyncio
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from tests.contract.test_counts import IN_FLIGHT, LONGEST, metered
from tests.metered import Metered
from tests.stores import TESTER, DynamoStores, dynamo_stores, funded_key, record_of
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsCaller, AwsReply
from tollgate.core.principal import Principal
from tollgate.stores.rules.level_settings import LevelSettings, MemberSettings

__all__ = ["metered"]
LIMITS = {"day": 10**15, "week": 10**15, "month": 10**15, "total": 10**15}
EVERY_LIMIT = {
    "limits_nano_usd": LIMITS,
    "requests_per_minute": 60_000,
    "tokens_per_minute": 10**9,
    "concurrency": 1_000,
}
KEY = replace(LONGEST, workspace_id="acme", member_id="ana@example.com")


async def _grouped(
    stores: DynamoStores, team: LevelSettings, member: MemberSettings
) -> tuple[str, Principal]:
    await stores.teams.create("acme", "search", team, by=TESTER)
    settings = replace(member, team_id="search")
    await stores.members.create("acme", "ana@example.com", settings, by=TESTER)
    return await funded_key(stores, 10**15, KEY)


@pytest.mark.parametrize(
    ("team", "member", "levels"),
    [
        (LevelSettings(models=("*",), tier="gold"), MemberSettings(role="owner"), 0),
        (LevelSettings(limits_nano_usd=LIMITS), MemberSettings(), 1),
        (LevelSettings(**EVERY_LIMIT), MemberSettings(**EVERY_LIMIT), 2),
    ],
)
@pytest.mark.parametrize("in_flight", [0, IN_FLIGHT])
async def test_each_level_with_limits_is_two_write_units_and_no_round_trip(
    metered: tuple[Metered, DynamoStores],
    team: LevelSettings,
    member: MemberSettings,
    levels: int,
    in_flight: int,
) -> None:
    meter, stores = metered
    _, principal = await _grouped(stores, team, member)
    for _ in range(1 + in_flight):
        await stores.ledger.hold(principal, 10**9, tokens=1_000)
    meter.reset()

    hold = await stores.ledger.hold(principal, 10**9, tokens=1_000)
    await stores.ledger.settle(hold, record_of(hold, 5))

    sides = ["UpdateItem"] * (2 + levels)
    assert meter.rounds == [sides, ["PutItem"], sides]
    assert (meter.write_units, meter.conditions_failed, meter.reads) == (5 + 2 * levels, 0, [])


async def test_the_rows_above_a_key_are_read_along_with_it(
    metered: tuple[Metered, DynamoStores],
) -> None:
    meter, stores = metered
    secret, _ = await _grouped(stores, LevelSettings(), MemberSettings())
    session = await stores.sessions.open("acme", "ana@example.com", lifetime_s=600, by=TESTER)
    assert session is not None
    on_its_own, _ = await funded_key(stores, 1, replace(KEY, member_id=None))
    # The first time in a process, each step is known by the one before it.
    for first, known in ((session.secret, 3), (secret, 1), (on_its_own, 1)):
        for rounds in (known, 1):
            stores.clock.now += 5
            meter.reset()
            await stores.keys.authenticate(first)
            assert meter.rounds == [["BatchGetItem"]] * rounds


async def test_a_level_that_has_just_got_its_first_hold_sends_no_write_again(
    metered: tuple[Metered, DynamoStores],
) -> None:
    """A level without a rate has no bucket whose form a process could guess wrongly."""
    meter, stores = metered
    _, principal = await _grouped(
        stores, LevelSettings(limits_nano_usd=LIMITS), MemberSettings(concurrency=10)
    )
    meter.reset()
    for _ in range(2):
        await stores.ledger.hold(principal, 10**9, tokens=1_000)
    # The key's own rate is busy after the first.
    assert meter.conditions_failed <= 1


async def test_a_key_that_is_first_used_by_two_requests_at_once_serves_both(
    metered: tuple[Metered, DynamoStores],
) -> None:
    """Which rows lead above it is found out by one read while the other is on its way."""
    _, stores = metered
    secret, principal = await _grouped(stores, LevelSettings(), MemberSettings())
    late = _LateFirst(stores.client)
    process = dynamo_stores(late, stores.tables, stores.clock)

    first = asyncio.create_task(process.keys.authenticate(secret))
    await late.asked.wait()
    assert await process.keys.authenticate(secret) == principal
    late.arrives.set()

    assert await first == principal


class _LateFirst:
    """A client whose first reply arrives when it is told to."""

    def __init__(self, client: AwsCaller) -> None:
        self._client = client
        self.asked, self.arrives = asyncio.Event(), asyncio.Event()

    async def call(
        self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        reply = await self._client.call(operation, payload, attempts_max=attempts_max)
        if not self.asked.is_set():
            self.asked.set()
            await self.arrives.wait()
        return reply
