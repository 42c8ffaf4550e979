"""Workspaces: made, locked, grown, balanced, budgeted, audited.

Keeps C60, C61.
"""

import asyncio
import json
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from tests.faulty_client import Killed
from tests.stores import TESTER, DynamoStores, disable, dynamo_stores, funded_key, record_of
from tollgate.aws.attributes import number
from tollgate.core.errors import AccessError, ErrorCode, LedgerError, RequestError
from tollgate.core.ids import IdSource
from tollgate.core.webhooks import DeliveryFailed
from tollgate.stores.aws.decoding import read_number
from tollgate.stores.aws.tables import wallet_key
from tollgate.stores.keys.writes import KeyWrites
from tollgate.stores.money.budgets import Budgets
from tollgate.stores.money.credit_lots import CreditLots
from tollgate.stores.money.workspace_maintenance import WorkspaceMaintenance
from tollgate.stores.people.pending import PendingLevels
from tollgate.stores.people.slices import LevelSlices
from tollgate.stores.ports.administration import NewKey, WorkspaceSettings
from tollgate.stores.rules.account import HOLDS_CROWDED
from tollgate.stores.rules.periods import period_ends_s

# From one round of the sweeper's function to the next.
ROUND_S = 300
KEY = NewKey(workspace_id="acme", label="test", requests_per_minute=60_000, burst=1000)


@dataclass
class Inbox:
    """A channel that keeps its events, unless it is set to fail."""

    name: str = "inbox"
    failing: bool = False
    events: list[dict[str, object]] = field(default_factory=list)

    async def send(self, event: bytes) -> None:
        await asyncio.sleep(0)
        if self.failing:
            raise DeliveryFailed("down")
        self.events.append(json.loads(event))


def maintenance(stores: DynamoStores, *inboxes: Inbox) -> WorkspaceMaintenance:
    ids = IdSource(stores.clock)
    return WorkspaceMaintenance(
        stores.client,
        stores.tables,
        wallets=stores.wallets,
        workspaces=stores.workspaces,
        budgets=Budgets(
            stores.client, stores.tables, stores.workspaces, inboxes, ids=ids, clock=stores.clock
        ),
        lots=CreditLots(stores.client, stores.tables, stores.wallets, ids=ids, clock=stores.clock),
        key_writes=KeyWrites(stores.client, stores.tables, ids=ids, clock=stores.clock),
        levels=PendingLevels(stores.client, stores.tables, ids=ids, clock=stores.clock),
        slices=LevelSlices(stores.client, stores.tables, ids=ids, clock=stores.clock),
        ids=ids,
        clock=stores.clock,
    )


def percents(inbox: Inbox) -> list[object]:
    return [event["data"]["percent"] for event in inbox.events]  # type: ignore[index]


async def spend(stores: DynamoStores, principal: object, cost: int) -> None:
    hold = await stores.ledger.hold(principal, max(1, cost))  # type: ignore[arg-type]
    await stores.ledger.settle(hold, record_of(hold, cost))


async def test_c61_workspaces_are_made_once_and_listed_by_pages(dynamo: DynamoStores) -> None:
    settings = WorkspaceSettings(admission="covered", budget_nano_usd=5, pause_at_budget=True)
    for name in ("beta", "alpha", "gamma"):
        made = await dynamo.workspaces.create(name, settings, by=TESTER)
        assert made is not None
        assert (made.id, made.shards, made.locked, made.settings) == (name, 1, False, settings)
    assert await dynamo.workspaces.create("beta", WorkspaceSettings(), by=TESTER) is None

    first = await dynamo.workspaces.list(limit=2)
    rest = await dynamo.workspaces.list(after=first.next, limit=2)

    assert [it.id for it in (*first.found, *rest.found)] == ["alpha", "beta", "gamma"]
    assert rest.next is None
    for bad in ("a#b", "", "A", "-a", "x" * 64):
        with pytest.raises(RequestError):
            await dynamo.workspaces.create(bad, settings, by=TESTER)


async def test_c61_a_locked_workspace_holds_nothing_until_it_is_unlocked(
    dynamo: DynamoStores,
) -> None:
    _, principal = await funded_key(dynamo, 1_000, KEY)
    hold = await dynamo.ledger.hold(principal, 10)

    await dynamo.workspaces.set_locked("acme", locked=True, by=TESTER)
    with pytest.raises(AccessError) as refused:
        await dynamo.ledger.hold(principal, 10)
    await dynamo.ledger.settle(hold, record_of(hold, 3))
    await dynamo.workspaces.set_locked("acme", locked=False, by=TESTER)

    assert refused.value.code is ErrorCode.WORKSPACE_LOCKED
    await dynamo.ledger.hold(principal, 10)
    assert await dynamo.workspaces.set_locked("ghost", locked=True, by=TESTER) is None


async def test_a_crowded_workspace_grows_and_its_credit_is_spread(dynamo: DynamoStores) -> None:
    secret, principal = await funded_key(dynamo, 100_000, KEY)
    holds = [await dynamo.ledger.hold(principal, 10) for _ in range(HOLDS_CROWDED + 1)]
    assert [hold.crowded for hold in holds[-2:]] == [False, True]
    care = maintenance(dynamo, Inbox())

    for hold in holds:
        await dynamo.ledger.settle(hold, record_of(hold, 1))
    assert (await care.run()).grown == 1
    assert (await care.run()).grown == 0

    dynamo.clock.now += 5
    assert (await dynamo.keys.authenticate(secret)).shards == 4
    shards = await dynamo.wallets.items("acme", 4)
    assert all(read_number(shard, "av") >= 20_000 for shard in shards)
    balance = await dynamo.credits.balance("acme")
    assert (balance.granted_nano_usd, balance.spent_nano_usd) == (100_000, HOLDS_CROWDED + 1)
    assert await dynamo.audit.run() == []


async def test_c69_days_of_responses_reach_all_keys_and_a_keys_own_come_first(
    dynamo: DynamoStores,
) -> None:
    async def days(secret: str) -> int | None:
        # What was found is believed for five seconds.
        dynamo.clock.now += 6
        return (await dynamo.keys.authenticate(secret)).response_days

    secret, _ = await funded_key(dynamo, 100, KEY)
    await dynamo.workspaces.ensure("acme", by=TESTER)
    assert await days(secret) is None
    await dynamo.workspaces.change("acme", lambda it: replace(it, response_days=30), by=TESTER)
    own = NewKey(workspace_id="acme", label="own", response_days=1)
    made = await dynamo.keys.create(own, by=TESTER)
    later = await dynamo.keys.create(NewKey(workspace_id="acme", label="later"), by=TESTER)
    assert [await days(it) for it in (secret, made.secret, later.secret)] == [30, 1, 30]
    await dynamo.workspaces.change("acme", lambda it: replace(it, response_days=None), by=TESTER)
    assert [await days(it) for it in (secret, made.secret, later.secret)] == [None, 1, None]
    with pytest.raises(RequestError, match="response_days"):
        WorkspaceSettings(response_days=2)


async def test_a_lock_and_an_admission_reach_new_shards_and_all_keys(dynamo: DynamoStores) -> None:
    secret, principal = await funded_key(dynamo, 1_000, KEY)
    rotated = await dynamo.keys.rotate("acme", principal.key_id, grace_s=3600, by=TESTER)
    assert rotated is not None
    await dynamo.workspaces.set_locked("acme", locked=True, by=TESTER)
    await dynamo.workspaces.grow("acme")
    await dynamo.workspaces.change("acme", lambda it: replace(it, admission="covered"), by=TESTER)
    dynamo.clock.now += 5

    for shard in await dynamo.wallets.items("acme", 4):
        assert read_number(shard, "lk") == 1
    for known in (secret, rotated.secret):
        told = await dynamo.keys.authenticate(known)
        assert (told.shards, told.admission) == (4, "covered")
    created = await dynamo.keys.create(replace(KEY, label="later"), by=TESTER)
    assert (await dynamo.keys.authenticate(created.secret)).shards == 4


async def test_c61_each_alert_is_made_once_and_sent_until_it_is_taken(
    dynamo: DynamoStores,
) -> None:
    _, principal = await funded_key(dynamo, 10_000, KEY)
    await dynamo.workspaces.change(
        "acme", lambda _: WorkspaceSettings(budget_nano_usd=1_000), by=TESTER
    )
    inbox = Inbox()
    care = maintenance(dynamo, inbox)

    await spend(dynamo, principal, 499)
    assert (await care.run()).alerts == 0
    await spend(dynamo, principal, 1)
    inbox.failing = True
    assert (await care.run()).alerts == 1
    assert inbox.events == []
    inbox.failing = False
    for _ in range(2):
        dynamo.clock.now += ROUND_S
        assert (await care.run()).alerts == 0
    assert percents(inbox) == [50]
    event = inbox.events[0]
    assert set(event) == {"id", "type", "workspace_id", "created_at", "data"}
    assert event["type"] == "workspace.budget_alert"
    assert (await dynamo.workspaces.ensure("acme", by=TESTER)).paused is False


async def test_c61_maintenance_runs_that_race_send_each_alert_once(honest: DynamoStores) -> None:
    _, principal = await funded_key(honest, 10_000, KEY)
    await honest.workspaces.change(
        "acme", lambda _: WorkspaceSettings(budget_nano_usd=1_000), by=TESTER
    )
    inbox = Inbox()
    await spend(honest, principal, 1_000)

    for _ in range(3):
        reports = await asyncio.gather(*(maintenance(honest, inbox).run() for _ in range(8)))
        honest.clock.now += ROUND_S

    assert sum(report.alerts for report in reports) == 0
    assert sorted(percents(inbox)) == [50, 75, 90, 100]


async def test_c61_a_channel_that_is_down_keeps_no_other_from_its_alerts(
    dynamo: DynamoStores,
) -> None:
    _, principal = await funded_key(dynamo, 10_000, KEY)
    await dynamo.workspaces.change(
        "acme", lambda _: WorkspaceSettings(budget_nano_usd=1_000), by=TESTER
    )
    down, well = Inbox(name="down", failing=True), Inbox(name="well")
    care = maintenance(dynamo, down, well)
    await spend(dynamo, principal, 500)

    for _ in range(3):
        await care.run()
        dynamo.clock.now += ROUND_S
    assert (percents(down), percents(well)) == ([], [50])
    down.failing = False
    await care.run()
    assert (percents(down), percents(well)) == ([50], [50])
    assert down.events == well.events


async def test_c61_a_process_that_dies_while_it_sends_leaves_the_alert_to_the_next(
    dynamo: DynamoStores,
) -> None:
    _, principal = await funded_key(dynamo, 10_000, KEY)
    await dynamo.workspaces.change(
        "acme", lambda _: WorkspaceSettings(budget_nano_usd=1_000), by=TESTER
    )
    await spend(dynamo, principal, 500)

    class Dies(Inbox):
        async def send(self, event: bytes) -> None:
            raise Killed

    with pytest.raises(Killed):
        await maintenance(dynamo, Dies()).run()
    inbox = Inbox()
    await maintenance(dynamo, inbox).run()
    assert inbox.events == []
    dynamo.clock.now += ROUND_S
    await maintenance(dynamo, inbox).run()
    assert percents(inbox) == [50]


async def test_an_alert_of_last_week_is_no_news_to_a_new_channel(dynamo: DynamoStores) -> None:
    _, principal = await funded_key(dynamo, 10_000, KEY)
    await dynamo.workspaces.change(
        "acme", lambda _: WorkspaceSettings(budget_nano_usd=1_000), by=TESTER
    )
    await spend(dynamo, principal, 500)
    assert (await maintenance(dynamo).run()).alerts == 1
    dynamo.clock.now += 7 * 86_400
    inbox = Inbox()

    await maintenance(dynamo, inbox).run()

    assert inbox.events == []


async def test_c61_a_spent_budget_pauses_until_the_month_ends(dynamo: DynamoStores) -> None:
    _, principal = await funded_key(dynamo, 10_000, KEY)
    _, other = await funded_key(dynamo, 10_000, KEY)
    settings = WorkspaceSettings(budget_nano_usd=1_000, pause_at_budget=True)
    await dynamo.workspaces.change("acme", lambda _: settings, by=TESTER)
    care = maintenance(dynamo, Inbox())

    await spend(dynamo, principal, 600)
    await spend(dynamo, other, 400)
    # What a deleted key has spent this month still counts.
    assert await dynamo.keys.delete("acme", other.key_id, by=TESTER) is True
    assert (await care.run()).alerts == 4

    assert (await dynamo.workspaces.ensure("acme", by=TESTER)).paused
    with pytest.raises(AccessError) as refused:
        await dynamo.ledger.hold(principal, 1)
    assert refused.value.code is ErrorCode.WORKSPACE_LOCKED
    assert "has spent its budget for this month" in refused.value.message
    assert refused.value.resets_s == period_ends_s("month", int(dynamo.clock.now))
    dynamo.clock.now += 10 * 86_400
    await care.run()
    await dynamo.ledger.hold(principal, 1)
    assert await dynamo.audit.run() == []


async def test_the_audit_sees_what_does_not_add_up(dynamo: DynamoStores) -> None:
    _, principal = await funded_key(dynamo, 10_000, KEY)
    await spend(dynamo, principal, 600)
    unsettled = await dynamo.ledger.hold(principal, 10)
    assert await dynamo.audit.run() == []

    async def tamper(update: str, amount: int) -> None:
        await dynamo.client.call(
            "UpdateItem",
            {
                "TableName": dynamo.tables.ledger,
                "Key": wallet_key("acme", 0),
                "UpdateExpression": update,
                "ExpressionAttributeValues": {":x": number(amount)},
            },
        )

    for update, invariants in (
        ("SET av = av + :x", {"I1 available + held + spent"}),
        ("SET av = av - :x, sp = sp + :x", {"I4 spent by the wallet"}),
        ("SET av = av + :x, gr = gr + :x", {"I3 granted"}),
    ):
        await tamper(update, 7)
        found = await dynamo.audit.run()
        assert {it.invariant for it in found} == invariants
        await tamper(update, -7)
    await dynamo.ledger.settle(unsettled, record_of(unsettled, 4))
    assert await dynamo.audit.run() == []


async def test_the_audit_counts_closed_days_instead_of_their_records(dynamo: DynamoStores) -> None:
    _, principal = await funded_key(dynamo, 10_000, KEY)
    await spend(dynamo, principal, 600)
    day = {"pk": {"S": "W#acme"}, "sk": {"S": "D#20261121"}}
    dynamo.clock.now += 40 * 86_400
    assert {it.invariant for it in await dynamo.audit.run()} == {
        "I4 spent by the wallet",
        "I10 spent by keys",
    }

    await dynamo.client.call(
        "PutItem", {"TableName": dynamo.tables.core, "Item": {**day, "c": number(600)}}
    )

    assert await dynamo.audit.run() == []


async def test_c60_a_disabled_key_is_refused_by_another_process_within_five_seconds(
    dynamo: DynamoStores,
) -> None:
    secret, principal = await funded_key(dynamo, 1_000, KEY)
    elsewhere = dynamo_stores(dynamo.client, dynamo.tables, dynamo.clock)
    await elsewhere.keys.authenticate(secret)

    await disable(dynamo, principal.key_id)

    with pytest.raises(AccessError):
        await elsewhere.ledger.hold(principal, 1)
    dynamo.clock.now += 5
    with pytest.raises(AccessError):
        await elsewhere.keys.authenticate(secret)


async def test_a_covered_hold_is_refused_by_a_short_wallet(dynamo: DynamoStores) -> None:
    _, principal = await funded_key(dynamo, 100, KEY)

    with pytest.raises(LedgerError) as refused:
        await dynamo.ledger.hold(principal, 101, covered=True)

    assert refused.value.code is ErrorCode.INSUFFICIENT_CREDITS
