"""A day far above the usual, which the roll-up enters into the audit log.

Keeps C67.
"""

import asyncio

from tests.contract.test_activity import MIDNIGHT_S, generated
from tests.stores import DynamoStores, funded_key
from tollgate.core.clock import DAY_S
from tollgate.core.records.audit import AuditEntry, AuditFilter
from tollgate.stores.rules.webhook_events import event_type

USD = 10**9
EVER = AuditFilter(since_s=0, until_s=2**33)


async def spent(dynamo: DynamoStores, *usd_of_days: float) -> None:
    """Close days up to yesterday on which one key of a team spent these dollars."""
    _, principal = await funded_key(dynamo, 10**12)
    first_s = MIDNIGHT_S - len(usd_of_days) * DAY_S
    labels = {"team": "search"}
    for place, cost in enumerate(usd_of_days):
        at_s, nano_usd = first_s + place * DAY_S + 1, int(cost * USD)
        if cost:
            await generated(dynamo, principal, at_s, nano_usd, labels=labels, key_label="ci")
    dynamo.clock.now = MIDNIGHT_S + 3_600
    await dynamo.activity.close_due()


async def announced(dynamo: DynamoStores) -> list[AuditEntry]:
    page = await dynamo.audit_log.page("acme", EVER, limit=100)
    return [entry for entry in page.found if entry.action == "spend.anomaly"]


async def test_c67_a_day_far_above_the_usual_is_announced_once(dynamo: DynamoStores) -> None:
    await spent(dynamo, 5, 6, 7, 0, 5, 6, 7, 6, 100)
    await dynamo.activity.close_due()
    entries = await announced(dynamo)
    assert {(it.after["kind"], it.target_name) for it in entries} == {
        ("key", "ci"),
        ("team", None),
        ("model", None),
    }
    assert {it.target for it in entries} >= {"search", "test/echo"}
    for entry in entries:
        assert entry.after["day"] == "2026-11-20"
        assert (entry.after["cost"], entry.after["usual_day"]) == ("100", "6")
        assert (entry.actor.kind, entry.actor.id) == ("process", "rollup")
        assert event_type(entry) == "spend.anomaly"
    assert len(entries) == 3


async def test_c67_of_two_roll_ups_at_once_one_announces(dynamo: DynamoStores) -> None:
    await spent(dynamo, *[5] * 8)
    _, principal = await funded_key(dynamo, 10**12)
    await generated(dynamo, principal, MIDNIGHT_S + 1, 100 * USD)
    dynamo.clock.now = MIDNIGHT_S + DAY_S + 3_600
    await asyncio.gather(*(dynamo.activity.close_due() for _ in range(3)))
    assert [it.after["kind"] for it in await announced(dynamo)] == ["model"]


async def test_c67_a_dear_day_is_usual_or_the_first_of_its_kind_or_small(
    dynamo: DynamoStores,
) -> None:
    await spent(dynamo, 1, 1, 1, 1, 1, 1, 90, 90, 0.5, 9, 3, 1, 1)
    # On the first day of $90 there are six days with use, on the second seven.
    days = {entry.after["day"] for entry in await announced(dynamo)}
    assert days == {"2026-11-15"}
