"""Statements on DynamoDB: any months add up with the ledger, the activity and each other.

Keeps C64.
"""

import random
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from msgspec.structs import replace

from tests.contract.conftest import stores_at
from tests.contract.test_credit_lots import lots_of
from tests.nightly import first
from tests.stores import TESTER, DynamoStores, record_of
from tollgate.core.clock import DAY_S
from tollgate.core.errors import RequestError
from tollgate.core.ids import created_s
from tollgate.core.money.amounts import nano_usd
from tollgate.core.money.statement import UsageGroup, read_month
from tollgate.core.principal import Principal
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.usage import Usage
from tollgate.stores.money import statements
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.base import Hold
from tollgate.stores.ports.credit import CreditEntry, EntryKind
from tollgate.web.money.statement_shapes import statement_rows

START_S = int(datetime(2026, 10, 28, 22, tzinfo=UTC).timestamp())
MONTHS = ("2026-10", "2026-11", "2026-12")
MODELS = ("test/echo", "test/other", None)


class Account:
    """A workspace in which anything happens, and what it should come to."""

    def __init__(self, stores: DynamoStores, seed: int) -> None:
        self.stores = stores
        self.chance = random.Random(seed)
        self.principals: list[Principal] = []
        self.holds: list[Hold] = []
        self.records: list[GenerationRecord] = []
        self.number = 0

    async def open(self) -> None:
        self.stores.clock.now = START_S
        await self.stores.workspaces.ensure("acme", shards=2, by=TESTER)
        for team in ("search", "ads"):
            new = NewKey(
                workspace_id="acme",
                label=team,
                labels={"team": team, "member": f"{team}-dev"},
                requests_per_minute=6_000,
                burst=1_000,
            )
            made = await self.stores.keys.create(new, by=TESTER)
            self.principals.append(await self.stores.keys.authenticate(made.secret))
        await self.enter("grant", 100_000)

    async def enter(
        self, kind: EntryKind, amount: int, lasts_s: int | None = None, **more: object
    ) -> None:
        self.number += 1
        now_s = int(self.stores.clock.now)
        entry = CreditEntry(
            id=f"{kind}-{self.number}",
            workspace_id="acme",
            kind=kind,
            amount_nano_usd=amount,
            note="",
            created_s=now_s,
            expires_s=None if lasts_s is None else now_s + lasts_s,
        )
        await self.stores.credits.enter(replace(entry, **more), by=TESTER)

    async def step(self) -> None:
        amount = self.chance.randint(1, 999)
        match self.chance.randrange(12):
            case 0:
                await self.enter("grant", amount, self.chance.randint(1, 5 * DAY_S))
            case 1:
                await self.enter(self.chance.choice(["grant", "payment"]), amount)
            case 2:
                await self.enter("adjustment", -amount)
            case 3:
                limit = self.chance.choice([0, 5_000, 9_000])
                await self.stores.credits.set_credit_limit("acme", limit, by=TESTER)
            case 4 if self.records:
                record = self.records.pop(self.chance.randrange(len(self.records)))
                refund = self.chance.randint(1, record.cost_nano_usd)
                group = UsageGroup.of(
                    record.labels, record.model, record.provider, caller_labels={}
                )
                await self.enter("refund", refund, refunded=group)
            case 5 if self.holds:
                await self.settle()
            case 6:
                await lots_of(self.stores).expire("acme")
            case _:
                principal = self.chance.choice(self.principals)
                self.holds.append(await self.stores.ledger.hold(principal, amount))
                if self.chance.random() < 0.8:
                    await self.settle()

    async def settle(self) -> None:
        hold = self.holds.pop(0)
        labels = next(it.labels for it in self.principals if it.key_id == hold.key_id)
        model = self.chance.choice(MODELS)
        cost = self.chance.randint(1, 900) if model else 0
        record = replace(
            record_of(hold, cost),
            model=model,
            provider="simulator" if model else None,
            labels=labels,
            usage=Usage(uncached_input_tokens=3, output_tokens=2),
        )
        await self.stores.ledger.settle(hold, record)
        if cost:
            self.records.append(record)


@pytest.mark.parametrize("seed", first(1, range(4)))
async def test_c64_statements_of_any_months_add_up_to_the_nano_dollar(
    ministack_url: str, seed: int
) -> None:
    async with stores_at(ministack_url) as dynamo:
        await add_up(dynamo, seed)


async def add_up(dynamo: DynamoStores, seed: int) -> None:
    """Let anything happen for six weeks, and compare the statements of its three months."""
    account = Account(dynamo, seed)
    await account.open()
    costs: dict[str, int] = dict.fromkeys(MONTHS, 0)
    while dynamo.clock.now < START_S + 37 * DAY_S:
        await account.step()
        # Often across midnight, and across the end of a month, with holds open.
        to_midnight_s = DAY_S - 1 - dynamo.clock.now % DAY_S
        later_s = account.chance.choice([1, 300, 60_000, max(1, to_midnight_s)])
        while account.holds and (
            later_s > 300 or created_s(account.holds[0].id) < dynamo.clock.now - 300
        ):
            await account.settle()
        dynamo.clock.now += later_s
        if account.chance.random() < 0.2:
            await dynamo.activity.close_due()
    while account.holds:
        await account.settle()
    await lots_of(dynamo).expire("acme")
    for day_s in range(START_S, int(dynamo.clock.now) + 1, DAY_S):
        day = await dynamo.activity.activity("acme", day_s, day_s + 1)
        month = f"{datetime.fromtimestamp(day_s, UTC):%Y-%m}"
        costs[month] += sum(row.cost_nano_usd for row in day.rows)
    # The last minute is counted afresh.
    dynamo.clock.now += 61
    balance = await dynamo.credits.balance("acme")
    closing = 0
    for month in MONTHS:
        found = await dynamo.statements.statement("acme", read_month(month, dynamo.clock.now))
        assert found.opening_nano_usd == closing
        closing = found.closing_nano_usd
        assert found.usage_nano_usd == costs[month] > 0
        assert sum(line.refunded_nano_usd for line in found.lines) == found.entries_nano_usd.get(
            "refund", 0
        )
        amounts = [nano_usd(Decimal(row["amount"])) for row in statement_rows(found)]
        assert sum(amounts[:-1]) == amounts[-1] == closing
        assert found.final == (month != MONTHS[-1])
        assert found.missing_days == found.partial_days == ()
    assert {line.group.team for line in found.lines} <= {"search", "ads"}
    assert balance.held_nano_usd == 0
    assert closing + balance.credit_limit_nano_usd == balance.available_nano_usd
    assert found.credit_limit_nano_usd == balance.credit_limit_nano_usd
    assert await dynamo.audit.run() == []


async def test_c64_a_generation_is_usage_of_the_month_in_which_it_began(
    dynamo: DynamoStores,
) -> None:
    account = Account(dynamo, 0)
    await account.open()
    until_s = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp())
    dynamo.clock.now = until_s - 1
    hold = await dynamo.ledger.hold(account.principals[0], 50)
    assert created_s(hold.id) == until_s - 1
    dynamo.clock.now = until_s + 60
    await dynamo.ledger.settle(hold, record_of(hold, 33))
    october, november = [
        await dynamo.statements.statement("acme", read_month(month, dynamo.clock.now))
        for month in MONTHS[:2]
    ]
    assert (october.usage_nano_usd, october.closing_nano_usd) == (33, 99_967)
    # Its last day is closed an hour after midnight at the earliest.
    assert (october.final, october.live_days[-1]) == (False, "2026-10-31")
    assert (november.opening_nano_usd, november.usage_nano_usd) == (99_967, 0)
    dynamo.clock.now = until_s + 2 * 3600
    await dynamo.activity.close_due()
    october = await dynamo.statements.statement("acme", read_month("2026-10", dynamo.clock.now))
    assert (october.final, october.closing_nano_usd) == (True, 99_967)


async def test_c64_a_month_with_too_much_activity_is_refused(
    dynamo: DynamoStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = Account(dynamo, 0)
    await account.open()
    for principal in account.principals:
        hold = await dynamo.ledger.hold(principal, 1)
        await dynamo.ledger.settle(hold, record_of(hold, 1))
    month = read_month("2026-10", dynamo.clock.now)
    monkeypatch.setattr(statements, "ROWS_READ_MAX", 2)
    assert (await dynamo.statements.statement("acme", month)).usage_nano_usd == 2
    monkeypatch.setattr(statements, "ROWS_READ_MAX", 1)
    with pytest.raises(RequestError) as refused:
        await dynamo.statements.statement("acme", month)
    assert refused.value.param == "month"
