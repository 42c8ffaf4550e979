"""Bills outlive the records of their generations.

Keeps C67 and C99.
"""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from tests.contract.test_activity import MIDNIGHT_S, all_pages, between, generated
from tests.generation_store import BILL_RETENTION_S
from tests.stores import (
    NOON_S,
    TESTER,
    DynamoStores,
    HandClock,
    funded_key,
    scan_items,
)
from tests.unit.stores.records.test_generations import USUAL
from tollgate.core.clock import DAY_S
from tollgate.core.ids import first_id_of
from tollgate.core.records.generation import GenerationRecord
from tollgate.settings import Settings
from tollgate.stores.records.bills import DynamoBillStore
from tollgate.stores.rules.bills import bill_of
from tollgate.web.records.bill_notes import list_notes
from tollgate.wiring.stores import wire_stores

PERSON = {
    "user": "eve@acme",
    "client_request_id": "eve-1",
    "caller_labels": {"session": "eve-2"},
    "trace": replace(USUAL.trace, metadata={"who": "eve-3"}, draw_key_hash="eve-4"),
    "raw_usage": {"eve-5": 1},
    "attempts": (replace(USUAL.attempts[0], error="x", provider_words="eve-6"), USUAL.attempts[0]),
}


async def closed(dynamo: DynamoStores, count: int) -> list[GenerationRecord]:
    """Generations of a day that was closed, all of whose records have expired since."""
    _, principal = await funded_key(dynamo, 10**6)
    await dynamo.workspaces.ensure("acme", by=TESTER)
    changes: dict[str, Any] = {"lines": USUAL.lines, "usage": USUAL.usage, **PERSON}
    made = [
        await generated(dynamo, principal, MIDNIGHT_S - DAY_S + 60 * place, 7 + place, **changes)
        for place in range(count)
    ]
    dynamo.clock.now = NOON_S
    await dynamo.activity.close_due()
    await expire(dynamo, made)
    dynamo.clock.now = MIDNIGHT_S + 40 * DAY_S
    return made


async def expire(dynamo: DynamoStores, records: Sequence[GenerationRecord]) -> None:
    items = await scan_items(dynamo.client, dynamo.tables.generations)
    for item in items:
        if any(item["sk"]["S"].endswith(record.id) for record in records):
            key = {"pk": item["pk"], "sk": item["sk"]}
            parameters = {"TableName": dynamo.tables.generations, "Key": key}
            await dynamo.client.call("DeleteItem", parameters)


async def bills_items(dynamo: DynamoStores) -> list[Mapping[str, Any]]:
    items = await scan_items(dynamo.client, dynamo.tables.core)
    return [item for item in items if item["pk"]["S"].startswith("Y#")]


async def test_c67_an_expired_record_leaves_its_bill_with_lines_and_reasons(
    dynamo: DynamoStores,
) -> None:
    made = await closed(dynamo, 3)

    for record in made:
        found = await dynamo.generations.get("acme", record.id)
        assert found == bill_of(record)
        assert (found.lines, found.cost_nano_usd) == (record.lines, record.cost_nano_usd)
    [item] = await bills_items(dynamo)
    assert item["ttl"] == {"N": str(MIDNIGHT_S + BILL_RETENTION_S)}
    notes = list_notes(bill_of(made[0]), ())
    assert notes[0] == "the record has expired; this is the bill"
    assert "attempt 1 openai/gpt-5-mini via openai: 200 x, $0" in notes
    assert await dynamo.generations.get("other", made[0].id) is None
    unknown = first_id_of(MIDNIGHT_S - DAY_S + 90)
    assert await dynamo.generations.get("acme", unknown) is None


async def test_c67_a_list_has_bills_where_records_expired_and_each_generation_once(
    dynamo: DynamoStores,
) -> None:
    made = await closed(dynamo, 7)
    # A legal hold protects a record from expiry.
    await dynamo.generations.put_if_absent(made[3])
    wanted = between(MIDNIGHT_S - 2 * DAY_S, MIDNIGHT_S)

    for limit in (2, 50):
        ids, _ = await all_pages(dynamo, wanted, limit)
        assert ids == [record.id for record in reversed(made)], limit
    page = await dynamo.generations.page("acme", wanted, limit=9)
    assert [record.is_bill for record in page.found] == [True] * 3 + [False] + [True] * 3
    half = between(MIDNIGHT_S - DAY_S + 120, MIDNIGHT_S - DAY_S + 240)
    assert (await all_pages(dynamo, half, 9))[0] == [made[3].id, made[2].id]
    dear = replace(wanted, cost_min_nano_usd=13)
    assert (await all_pages(dynamo, dear, 9))[0] == [made[6].id]
    of_eve = replace(wanted, user="eve@acme")
    assert (await all_pages(dynamo, of_eve, 9))[0] == [made[3].id]


async def test_c99_bills_have_nothing_that_callers_said_about_a_person(
    dynamo: DynamoStores,
) -> None:
    made = await closed(dynamo, 2)
    wanted = between(MIDNIGHT_S - 2 * DAY_S, MIDNIGHT_S)

    page = await dynamo.generations.page("acme", wanted, limit=9)

    assert len(page.found) == len(made)
    assert all(f"eve-{number}" in str(made) for number in range(1, 7))
    assert "eve-" not in str(page.found)
    assert "eve@" not in str(page.found)


@pytest.mark.parametrize("is_large", [False, True])
async def test_c67_any_number_of_bills_is_written_again_without_a_second_copy(
    dynamo: DynamoStores, is_large: bool
) -> None:
    store = DynamoBillStore(dynamo.client, dynamo.tables.core, retention_s=1, clock=dynamo.clock)
    second = MIDNIGHT_S - 40 * DAY_S
    records = [
        replace(
            USUAL,
            id=first_id_of(second + place),
            workspace_id="acme",
            labels={"x": Random(place).randbytes(1_300).hex() if is_large else ""},
        )
        for place in range(260)
    ]
    for _ in range(2):
        await store.put(records)

    # An item has 250 bills, and half as many if they are too large for it.
    assert len(await bills_items(dynamo)) == (3 if is_large else 2)
    ids, high = [], first_id_of(second + DAY_S)
    while high > records[0].id:
        found = await store.page("acme", first_id_of(second), high)
        ids += [bill.id for bill in reversed(found.bills)]
        high = found.low
    assert ids == [record.id for record in reversed(records)]
    for record in (records[0], records[125], records[250], records[259]):
        assert await store.find("acme", record.id) == bill_of(record)


async def test_c67_a_young_generation_costs_no_read_of_bills(dynamo: DynamoStores) -> None:
    made = await closed(dynamo, 1)
    dynamo.clock.now = MIDNIGHT_S + 20 * DAY_S

    assert await dynamo.generations.get("acme", made[0].id) is None


@pytest.mark.parametrize(("days", "count"), [(400, 1), (30, 0)])
async def test_c67_bills_are_stored_only_if_they_outlive_records(
    moto_url: str, days: int, count: int
) -> None:
    clock = HandClock()
    settings = Settings(
        core_table=f"core-bills-{days}",
        ledger_table=f"ledger-bills-{days}",
        generations_table=f"generations-bills-{days}",
        dynamodb_endpoint_url=moto_url,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        bill_days=days,
    )
    async with aclosing(wire_stores(settings, clock)) as stores:
        await stores.create_tables()
        await stores.generations.put_bills([replace(USUAL, workspace_id="acme")])
        items = await scan_items(stores.client, settings.core_table)
    assert len(items) == count
