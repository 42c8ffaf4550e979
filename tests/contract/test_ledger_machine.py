"""Any order of what can happen to a wallet keeps its books (hypothesis chooses the orders).

Keeps C64.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from msgspec.structs import replace

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
from tollgate.core.errors import GatewayError
from tollgate.core.ids import IdSource
from tollgate.core.limits import AboveKey, LimitOwner, Period, SessionLimit
from tollgate.core.usage import Usage
from tollgate.stores.aws.decoding import read_number, read_numbers_by_name
from tollgate.stores.aws.tables import get_items, level_state_key, state_key
from tollgate.stores.money.credit_lots import CreditLots
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.base import Hold
from tollgate.stores.ports.credit import CreditEntry
from tollgate.stores.rules.key_settings import KeySettings
from tollgate.stores.rules.level_settings import LevelSettings, MemberSettings
from tollgate.stores.rules.quotas import stale_counters, use_of
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S

AMOUNTS = st.integers(1, 500)
KEY = NewKey(
    workspace_id="acme",
    label="t",
    requests_per_minute=60_000_000,
    burst=100_000,
    member_id="ana",
    quotas="usd/month=0.000002@anthropic/*,tokens/day=4000,requests/week=60,usd/hour=0.0000015",
)
MODELS = [("anthropic/opus",), ("anthropic/opus", "test/echo"), ("test/echo",)]
LIMITED = LevelSettings(limits_nano_usd={"day": 2_000})
MEMBER = MemberSettings(limits_nano_usd={"week": 5_000}, concurrency=5)
TEAMS = ("search", "other")
SESSIONS = [
    SessionLimit(id="wide", nano_usd=3_000, requests=20),
    SessionLimit(id="narrow", nano_usd=700, requests=4),
]


class Books(RuleBasedStateMachine):
    """One workspace over tables of its own."""

    endpoint_url = ""
    shards = 1

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.holds: list[Hold] = []
        self.placed: list[Hold] = []
        self.in_session: dict[str, list[Hold]] = {limit.id: [] for limit in SESSIONS}
        self.runner.run(self._open())

    async def _open(self) -> None:
        clock = HandClock()
        client = aws_client(self.endpoint_url, clock=clock, timeout_s=10.0)
        self.stores: DynamoStores = dynamo_stores(client, await fresh_tables(client), clock)
        ids = IdSource(clock)
        self.lots = CreditLots(
            client, self.stores.tables, self.stores.wallets, ids=ids, clock=clock
        )
        await self.stores.workspaces.ensure("acme", shards=self.shards, by=TESTER)
        await self.stores.members.create("acme", "ana", MEMBER, by=TESTER)
        for team in TEAMS:
            await self.stores.teams.create("acme", team, LIMITED, by=TESTER)
        self.secret, self.principal = await funded_key(self.stores, 3_000, KEY)

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return self.runner.run(work)
        except GatewayError:
            return None

    @rule(amount=AMOUNTS)
    def grant(self, amount: int) -> None:
        self.do(self.stores.credits.grant("acme", os.urandom(6).hex(), amount, "test", by=TESTER))

    @rule(amount=AMOUNTS)
    def take_back(self, amount: int) -> None:
        entry = CreditEntry(
            id=os.urandom(6).hex(),
            workspace_id="acme",
            kind="adjustment",
            amount_nano_usd=-amount,
            note="test",
            created_s=int(self.stores.clock.now),
        )
        self.do(self.stores.credits.enter(entry, by=TESTER))

    @rule(amount=AMOUNTS, days=st.sampled_from([0, 1, 2]))
    def grant_until(self, amount: int, days: int) -> None:
        now_s = int(self.stores.clock.now)
        entry = CreditEntry(
            id=os.urandom(6).hex(),
            workspace_id="acme",
            kind="grant",
            amount_nano_usd=amount,
            note="plan",
            created_s=now_s,
            expires_s=now_s + 600 + days * 86_400,
        )
        self.do(self.stores.credits.enter(entry, by=TESTER))

    @rule(later_s=st.sampled_from([0, 600, 86_400]))
    def expire(self, later_s: int) -> None:
        self.stores.clock.now += later_s
        self.do(self.lots.expire("acme"))

    @rule(limit=AMOUNTS | st.just(0))
    def lend(self, limit: int) -> None:
        self.do(self.stores.credits.set_credit_limit("acme", limit, by=TESTER))

    @rule(
        amount=AMOUNTS,
        covered=st.booleans(),
        session=st.none() | st.sampled_from(SESSIONS),
        models=st.sampled_from(MODELS),
    )
    def hold(
        self, amount: int, covered: bool, session: SessionLimit | None, models: tuple[str, ...]
    ) -> None:
        holding = self.stores.ledger.hold(
            self.principal,
            amount,
            tokens=2 * amount,
            covered=covered,
            session=session,
            models=models,
        )
        hold = self.do(holding)
        if hold is not None:
            self.holds.append(hold)
            self.placed.append(hold)
            if session is not None:
                self.in_session[session.id].append(hold)

    @rule(
        place=st.integers(0, 99),
        cost=AMOUNTS,
        again=st.booleans(),
        model=st.sampled_from(["anthropic/opus", "test/echo"]),
    )
    def settle(self, place: int, cost: int, again: bool, model: str) -> None:
        if self.holds:
            hold = self.holds[place % len(self.holds)]
            used = Usage(output_tokens=cost)
            record = replace(record_of(hold, cost), model=model, usage=used)
            self.do(self.stores.ledger.settle(hold, record))
            if not again:
                self.holds.remove(hold)

    @rule(place=st.integers(0, 99), cost=AMOUNTS)
    def die_between_record_and_settlement(self, place: int, cost: int) -> None:
        if self.holds:
            hold = self.holds.pop(place % len(self.holds))
            self.do(self.stores.generations.put_if_absent(record_of(hold, cost)))

    @rule(place=st.integers(0, 99), more=AMOUNTS)
    def top_up(self, place: int, more: int) -> None:
        if self.holds:
            self.do(self.stores.ledger.top_up(self.holds[place % len(self.holds)], more))

    @rule(
        place=st.integers(0, 99),
        more=st.lists(AMOUNTS, max_size=3),
        cost=AMOUNTS,
        dies=st.booleans(),
    )
    def go_on_in_rounds(self, place: int, more: list[int], cost: int, dies: bool) -> None:
        """Each round may need more money; the process may die between two of them."""
        if self.holds:
            hold = self.holds.pop(place % len(self.holds))
            for amount in more:
                hold = self.do(self.stores.ledger.top_up(hold, amount)) or hold
            if not dies:
                rounds = (Usage(output_tokens=1),) * (1 + len(more))
                record = replace(record_of(hold, cost), rounds=rounds)
                self.do(self.stores.ledger.settle(hold, record))

    @rule(later_s=st.sampled_from([1, 3600, HOLD_LIFETIME_S + 2]))
    def sweep(self, later_s: int) -> None:
        self.stores.clock.now += later_s
        self.do(self.stores.sweeper.run())

    @rule(amount=AMOUNTS)
    def move(self, amount: int) -> None:
        if self.shards > 1:
            token = os.urandom(8).hex()
            self.do(self.stores.wallets.move("acme", amount, source=0, target=1, token=token))

    @rule(locked=st.booleans())
    def lock(self, locked: bool) -> None:
        self.do(self.stores.workspaces.set_locked("acme", locked=locked, by=TESTER))

    @rule()
    def grow(self) -> None:
        if self.do(self.stores.workspaces.grow("acme")):
            self.shards = min(4 * self.shards, 16)
            # By then every process has read the key again.
            self.stores.clock.now += 5
            self.principal = self.runner.run(self.stores.keys.authenticate(self.secret))

    @rule(team=st.none() | st.sampled_from(TEAMS))
    def move_key(self, team: str | None) -> None:
        """What is in flight stays with the team that it was held on."""
        change = self.stores.keys.change(
            "acme", self.principal.key_id, lambda it: replace(it, team_id=team), by=TESTER
        )
        self.runner.run(change)
        self.principal = self.runner.run(self.stores.keys.authenticate(self.secret))

    @rule(team=st.sampled_from(TEAMS), limit=st.none() | AMOUNTS)
    def change_team(self, team: str, limit: int | None) -> None:
        limits: dict[Period, int] = {} if limit is None else {"day": limit, "total": 3 * limit}
        change = self.stores.teams.change(
            "acme", team, lambda it: replace(it, limits_nano_usd=limits), by=TESTER
        )
        self.runner.run(change)
        self.stores.clock.now += 5
        self.principal = self.runner.run(self.stores.keys.authenticate(self.secret))

    @rule(stopped=st.booleans(), limit=st.none() | AMOUNTS)
    def change_key(self, stopped: bool, limit: int | None) -> None:
        if stopped:
            self.do(disable(self.stores, self.principal.key_id))

        def edit(old: KeySettings) -> KeySettings:
            limits = {} if limit is None else {"day": limit}
            return replace(old, disabled=False, limits_nano_usd=limits)

        self.do(self.stores.keys.change("acme", self.principal.key_id, edit, by=TESTER))

    @invariant()
    def every_shard_adds_up(self) -> None:
        for item in self.runner.run(self.stores.wallets.items("acme", self.shards)):
            held = sum(read_numbers_by_name(item, "h").values())
            total = read_number(item, "av") + held + read_number(item, "sp")
            assert total == read_number(item, "gr")

    @invariant()
    def every_level_adds_up(self) -> None:
        levels: list[tuple[AboveKey, str]] = [
            ("member", "ana"),
            *(("team", team) for team in TEAMS),
        ]
        keys = [level_state_key(level, "acme", name) for level, name in levels]
        table = self.stores.tables.ledger
        for item in self.runner.run(get_items(self.stores.client, table, keys)):
            held = sum(read_numbers_by_name(item, "h").values())
            total = read_number(item, "lt")
            left = read_number(item, "b_total") if "b_total" in item else total
            assert left + held + read_number(item, "us") == total

    @invariant()
    def every_session_adds_up(self) -> None:
        for limit in SESSIONS:
            id_ = f"{self.principal.key_id}#{limit.id}"
            owner = LimitOwner(level="session", id=id_, workspace_id="acme")
            table = self.stores.tables.ledger
            items = self.runner.run(get_items(self.stores.client, table, [state_key(owner)]))
            ours = self.in_session[limit.id]
            # A hold that another side refuses may leave its session, with nothing used.
            assert items or not ours
            for item in items:
                held = read_numbers_by_name(item, "h")
                ended = [hold for hold in ours if hold.id not in held]
                costs = [
                    self.runner.run(self.stores.generations.get("acme", hold.id)).cost_nano_usd
                    for hold in ended
                ]
                assert read_number(item, "cm") == sum(held.values()) + sum(costs)
                assert read_number(item, "n") == len(ours) <= (limit.requests or 0)

    @invariant()
    def every_quota_adds_up(self) -> None:
        """A counter has what is held, and what ended generations used."""
        owner = LimitOwner(level="key", id=self.principal.key_id, workspace_id="acme")
        reading = get_items(self.stores.client, self.stores.tables.ledger, [state_key(owner)])
        [item] = self.runner.run(reading)
        expected: Counter[str] = Counter()
        for hold in self.placed:
            is_held = hold.id in read_numbers_by_name(item, "h")
            taken = {each.name: each.taken for each in hold.quotas}
            assert is_held == (f"q_{hold.id}" in item)
            if is_held:
                taken = dict(read_numbers_by_name(item, f"q_{hold.id}"))
            expected.update(taken)
            if not is_held:
                use = use_of(self.runner.run(self.stores.generations.get("acme", hold.id)))
                expected.subtract({name: use.unused(name, it) for name, it in taken.items()})
        over = stale_counters(item, int(self.stores.clock.now))
        for name in item:
            if name.startswith("c_") and name not in over:
                assert read_number(item, name) == expected[name]

    @invariant()
    def lots_are_part_of_the_credit(self) -> None:
        balance = self.runner.run(self.stores.credits.balance("acme"))
        unspent = balance.granted_nano_usd - balance.spent_nano_usd
        assert sum(lot.left_nano_usd for lot in balance.lots) <= max(0, unspent)

    def teardown(self) -> None:
        self.stores.clock.now += HOLD_LIFETIME_S + 2
        self.runner.run(self.stores.sweeper.run())
        # Nothing is held: all that is due is taken in one call.
        self.runner.run(self.lots.expire("acme"))
        balance = self.runner.run(self.stores.credits.balance("acme"))
        due = [lot for lot in balance.lots if lot.expires_s <= self.stores.clock.now]
        if balance.available_nano_usd > 0:
            assert due == []
        differences = self.runner.run(self.stores.audit.run())
        self.runner.run(self.stores.client.close())  # type: ignore[attr-defined]
        self.runner.close()
        assert differences == []


@pytest.mark.nightly
@pytest.mark.parametrize("shards", [1, 3])
def test_c64_the_books_add_up_after_any_step(honest_url: str, shards: int) -> None:
    class Here(Books):
        pass

    Here.endpoint_url, Here.shards = honest_url, shards
    run_state_machine_as_test(
        Here,
        settings=settings(
            max_examples=10,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
