"""What scheduled work costs as its tables grow: counts, which are the same on any machine."""

import gc
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from bench.scale.counted import CountedStore
from bench.scale.deployments import (
    copy_template,
    stores_on,
    workspace_name,
    write_template,
)
from bench.scale.generated import GeneratedRows
from bench.scale.records import RecordRows
from tests.contract.test_workspaces import maintenance
from tests.stores import (
    NOON_S,
    TESTER,
    DynamoStores,
    HandClock,
    dynamo_stores,
    funded_key,
    record_of,
)
from tests.unit.stores.records.test_generations import USUAL
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsCaller, AwsReply
from tollgate.core.clock import DAY_S
from tollgate.core.records.activity import ActivityRow, GenerationFilter, day_of, summarize_day
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.records.generations import DynamoGenerationStore

DAY = int(NOON_S) // DAY_S * DAY_S - DAY_S
KINDS = [
    replace(
        USUAL,
        key_id=f"key{place % 3:012d}",
        labels={"team": "a" if place % 7 else "b"} if place % 5 else {},
        key_label="ci" if place % 5 else "",
        caller_labels={"session": f"s-{place}"},
    )
    for place in range(35)
]


@pytest.fixture(autouse=True)
def freeze_the_heap() -> None:
    """Hide what other tests left, a million objects, from `gc.get_objects` at each call."""
    gc.freeze()


class Row(dict[str, Any]):
    """An item of a reply, which can be found as long as it is kept."""


class Watched:
    """Counts calls by operation, and the most rows and records that were kept at one of them."""

    def __init__(self, client: AwsCaller) -> None:
        self._client = client
        self.calls: dict[str, int] = {}
        self.rows_max = self.records_max = self.activity_max = 0
        self.at_once_max = self._at_once = 0

    async def call(
        self, operation: str, payload: Mapping[str, Any], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        kept = Counter(type(it) for it in gc.get_objects())
        self.rows_max = max(self.rows_max, kept[Row])
        self.records_max = max(self.records_max, kept[GenerationRecord])
        self.activity_max = max(self.activity_max, kept[ActivityRow])
        self.calls[operation] = self.calls.get(operation, 0) + 1
        self._at_once += 1
        self.at_once_max = max(self.at_once_max, self._at_once)
        try:
            reply = await self._client.call(operation, payload, attempts_max=attempts_max)
        finally:
            self._at_once -= 1
        return {**reply, "Items": list(map(Row, reply["Items"]))} if "Items" in reply else reply


async def grown(dynamo: DynamoStores, records: int) -> tuple[DynamoStores, Watched, RecordRows]:
    """The stores of a workspace that had so many records yesterday."""
    _, principal = await funded_key(dynamo, 10**6)
    rows = RecordRows(KINDS, workspace_id=principal.workspace_id, day_s=DAY, count=records)
    generated = {(dynamo.tables.generations, rows.partition): rows}
    watched = Watched(GeneratedRows(dynamo.client, generated))
    dynamo.clock.now = DAY + DAY_S + 3600
    return dynamo_stores(watched, dynamo.tables, dynamo.clock), watched, rows


async def test_a_roll_up_has_as_much_in_memory_for_any_number_of_records(
    honest: DynamoStores,
) -> None:
    stores, watched, rows = await grown(honest, 6_000)

    await stores.activity.close_due()

    # A page is there at least, or nothing was counted.
    assert 1_000 <= watched.records_max <= 1_100
    found = await stores.activity.activity("acme", DAY, DAY + DAY_S)
    assert found.closed_days == (day_of(DAY),)
    assert sorted(found.rows, key=str) == sorted(summarize_day(day_of(DAY), rows), key=str)


async def test_an_audit_has_as_much_in_memory_for_any_number_of_records(
    honest: DynamoStores,
) -> None:
    stores, watched, rows = await grown(honest, 6_000)

    found = await stores.audit.run()

    assert 1_000 <= watched.rows_max <= 1_100
    [spent] = [it for it in found if it.invariant == "I4 spent by the wallet"]
    assert spent.expected_nano_usd == len(rows) * USUAL.cost_nano_usd


async def test_an_audit_allows_for_a_record_whose_hold_is_not_settled_yet(
    honest: DynamoStores,
) -> None:
    _, principal = await funded_key(honest, 10**6)
    hold = await honest.ledger.hold(principal, 10)
    await DynamoGenerationStore(
        honest.client, honest.tables.generations, retention_s=DAY_S
    ).put_if_absent(record_of(hold, 7))

    assert await honest.audit.run() == []


@pytest.mark.parametrize(("work", "at_once"), [("maintenance", 16), ("audit", 8), ("rollup", 4)])
async def test_scheduled_work_visits_some_workspaces_at_a_time(
    honest: DynamoStores, work: str, at_once: int
) -> None:
    for number in range(at_once + 1):
        await honest.credits.grant(f"w{number}", "first", 10, "test", by=TESTER)
    honest.clock.now += 2 * DAY_S
    watched = Watched(honest.client)
    stores = dynamo_stores(watched, honest.tables, honest.clock)

    match work:
        case "maintenance":
            assert (await maintenance(stores).run()).workspaces == at_once + 1
        case "audit":
            assert await stores.audit.run() == []
        case _:
            assert await stores.activity.close_due() == (at_once + 1) * 21

    assert watched.at_once_max == at_once


async def test_lists_and_authentication_cost_the_same_for_any_number_of_keys(
    honest: DynamoStores,
) -> None:
    template = await write_template(honest.client, HandClock())

    async def costs(keys: int) -> list[tuple[int, float]]:
        counted = CountedStore(GeneratedRows(None, copy_template(template, keys=keys)))
        stores = stores_on(counted, template)
        found: list[tuple[int, float]] = []
        for work in (
            lambda: stores.keys.authenticate(template.secret),
            lambda: stores.keys.list(workspace_name(0), limit=100),
            lambda: stores.teams.list(workspace_name(0), limit=100),
            lambda: stores.members.list(workspace_name(0), limit=100),
        ):
            await work()
            cost = counted.measured()
            found.append((cost.calls, cost.read_units))
        return found

    assert await costs(200) == await costs(1_000)


@pytest.mark.parametrize("records", [10_000, 1_000_000])
async def test_a_page_of_records_costs_the_same_for_any_number_of_them(records: int) -> None:
    rows = RecordRows(KINDS, workspace_id="acme", day_s=DAY, count=records)
    counted = CountedStore(GeneratedRows(None, {("generations", rows.partition): rows}))
    store = DynamoGenerationStore(counted, "generations", retention_s=DAY_S)
    wanted = GenerationFilter(since_s=DAY, until_s=DAY + DAY_S)

    for before in (None, rows.record(records // 2).id):
        page = await store.page("acme", wanted, limit=20, before=before)
        assert len(page.found) == 20
    await store.page("acme", replace(wanted, model="none"), limit=20)

    cost = counted.measured()
    # One query each, and 40 for the filter: then the caller asks for the next page.
    assert (cost.calls, cost.items) == (42, 2 * 22 + 40 * 250)


async def test_the_activity_of_many_keys_is_read_row_by_row(honest: DynamoStores) -> None:
    template = await write_template(honest.client, HandClock())
    watched = Watched(GeneratedRows(None, copy_template(template, keys=1_000)))
    stores = stores_on(watched, template)
    days = (DAY - 19 * DAY_S, DAY + 2 * DAY_S)

    found = await stores.activity.read(workspace_name(0), *days)
    places = [row.place async for row in found.rows]

    assert (len(places), len(set(places))) == (21_000, 21_000)
    assert watched.rows_max < 8_000  # those of one reply of 1 MB
    assert watched.activity_max < 10


async def test_a_later_page_of_activity_costs_what_is_behind_it(honest: DynamoStores) -> None:
    template = await write_template(honest.client, HandClock())
    counted = CountedStore(GeneratedRows(None, copy_template(template, keys=100)))
    stores = stores_on(counted, template)
    days = (DAY - 19 * DAY_S, DAY + 2 * DAY_S)
    whole = (await stores.activity.activity(workspace_name(0), *days)).rows
    assert len(whole) == 2_100
    counted.measured()

    last = await stores.activity.read(workspace_name(0), *days, after=whole[2_049].place)

    assert [row async for row in last.rows] == list(whole[2_050:])
    # The row of the place itself is read too, and the marks of 21 days.
    assert counted.measured().items == 51 + 21
