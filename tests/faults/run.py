"""The fault test: what a wallet goes through in a bad year, in seconds, and an audit at the end.

Worker processes spend through a network that kills, loses, delays, repeats and refuses, until each
of their writes has met each of these. Meanwhile this process watches the books, sweeps, grants and
takes back, moves credit between shards, all through such a network too; it lets the workspace grow,
locks it, disables a key; midnight passes. Then everything comes to rest and must add up exactly.
"""

import asyncio
import itertools
import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tests.faults.checks import LIMIT, Findings, check_shard, check_state
from tests.faults.clock import RATE, FastClock
from tests.faults.processes import run_order, start
from tests.faults.slices import divide, owed
from tests.faults.worker import Order
from tests.faulty_client import MONEY_SITES, Faults, FaultyAwsJson, Killed
from tests.stores import (
    TESTER,
    DynamoStores,
    HandClock,
    aws_client,
    client_of,
    disable,
    dynamo_stores,
    fresh_tables,
    scan_items,
)
from tollgate.aws.attributes import Item
from tollgate.aws.failures import StoreError
from tollgate.core.errors import GatewayError, RequestError
from tollgate.core.ids import IdSource
from tollgate.core.limits import AboveKey, Period
from tollgate.core.records.activity import DAY_S, GenerationFilter
from tollgate.stores.aws.decoding import read_number, read_text
from tollgate.stores.aws.row_ranges import all_rows
from tollgate.stores.aws.tables import Tables, get_items, key_state_key, level_state_key
from tollgate.stores.money.credit_lots import CreditLots
from tollgate.stores.ports.administration import CreatedKey, NewKey
from tollgate.stores.ports.credit import CreditEntry
from tollgate.stores.rules.key_settings import KeySettings
from tollgate.stores.rules.level_settings import LevelSettings, MemberSettings
from tollgate.stores.rules.periods import bucket_names
from tollgate.stores.rules.slices import SLICES_MAX
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S

WORKSPACE = "acme"
LIMITS: dict[Period, int] = {"day": LIMIT, "week": LIMIT, "month": LIMIT, "total": LIMIT}
MEMBER = "ana"
# Keys go back and forth between them, with what they hold in flight.
TEAMS = ("search", "other")
# Those whose states are spread over slices meanwhile.
SLICED: Final[Sequence[tuple[AboveKey, str]]] = (("team", TEAMS[0]), ("member", MEMBER))
# 2026-11-22, 00:00 UTC: a day and a week's end, so two of the buckets change.
MIDNIGHT_S = 1795305600.0
PROCESSES = 2
WORKERS = 64
_ROOT = Path(__file__).parent.parent.parent


_FAULT_RATE = 0.25
_FAULTS_WITHIN_S = 600
_CALLED_OFF = (GatewayError, StoreError, Killed)


@dataclass(frozen=True, kw_only=True)
class Wallet:
    """The wealth of a run's workspace; a starved one shows other bugs than a rich one.

    `sites` are those of the money path that its workers get to.
    """

    name: str
    credit: int
    amount_max: int
    sites: frozenset[str]


# Nobody takes the rest of a wallet that has enough.
RICH = Wallet(name="rich", credit=10**9, amount_max=500, sites=MONEY_SITES - {"wallet rest"})
STARVED = Wallet(name="starved", credit=40_000, amount_max=1_500, sites=MONEY_SITES)


async def run(
    endpoint_url: str,
    wallet: Wallet,
    *,
    seconds: float,
    seed: int,
    late_max_s: float = 6.0,
    findings: Findings | None = None,
) -> Findings:
    """One run; what it found, which `findings` tells from the first moment on."""
    processes = await asyncio.gather(*(start("tests.faults.worker") for _ in range(PROCESSES)))
    # Midnight comes while the workers work: time runs only once everything is there for them.
    began_s = MIDNIGHT_S - seconds * RATE * 0.7
    tables, keys = await _opened(endpoint_url, wallet, HandClock(began_s))
    started_s = time.time()
    clock = FastClock(started_s, began_s)
    client = aws_client(endpoint_url, clock=clock, timeout_s=10.0)
    stores = dynamo_stores(client, tables, clock)
    orders = [
        Order(
            endpoint_url=endpoint_url,
            tables={
                "core": tables.core,
                "ledger": tables.ledger,
                "generations": tables.generations,
            },
            secrets=[key.secret for key in keys],
            workers=WORKERS // PROCESSES,
            seconds=seconds,
            seed=seed + process,
            amount_max=wallet.amount_max,
            sites=sorted(wallet.sites),
            fault_rate=_FAULT_RATE,
            late_max_s=late_max_s,
            started_s=started_s,
            began_s=clock.began_s,
        )
        for process in range(PROCESSES)
    ]
    findings = findings or Findings()
    findings.first_day = bucket_names(int(clock.began_s))[0]
    done = asyncio.Event()
    network = client_of(FaultyAwsJson, endpoint_url, clock=clock, timeout_s=10.0)
    network.faults = faults = Faults(random.Random(seed), rate=_FAULT_RATE, late_max_s=late_max_s)
    faulty = dynamo_stores(network, tables, clock)
    around = [
        asyncio.create_task(_watch(stores, [key.summary.id for key in keys], findings, done)),
        asyncio.create_task(_sweep(faulty, findings, done)),
        asyncio.create_task(_enter(faulty, findings, done)),
        asyncio.create_task(_move(faulty, random.Random(seed), findings, done)),
        asyncio.create_task(divide(faulty, SLICED, findings, done)),
        asyncio.create_task(divide(stores, SLICED, findings, done)),
        asyncio.create_task(_meddle(stores, random.Random(seed), findings, done)),
    ]
    for counts in await asyncio.gather(*map(run_order, processes, orders)):
        findings.counts.update(counts)
    done.set()
    # They go on until each write has met every fault.
    async with asyncio.timeout(_FAULTS_WITHIN_S):
        await asyncio.gather(*around)
    await faults.all_delivered()
    await network.close()
    findings.counts.update(faults.hits)
    clock.now += HOLD_LIFETIME_S + 2
    await stores.sweeper.run()
    again = await stores.sweeper.run()
    findings.check(again.found == 0, f"I7: {again.found} holds outlive two sweeps")
    await _audit(stores, findings)
    await client.close()
    return findings


async def _opened(
    endpoint_url: str, wallet: Wallet, clock: HandClock
) -> tuple[Tables, list[CreatedKey]]:
    """Tables with a workspace, its credit, and keys: alone, in a team, of a member in a team."""
    client = aws_client(endpoint_url, clock=clock, timeout_s=10.0)
    tables = await fresh_tables(client)
    stores = dynamo_stores(client, tables, clock)
    await stores.credits.grant(WORKSPACE, "first", wallet.credit, "test", by=TESTER)
    await stores.members.create(
        WORKSPACE, MEMBER, MemberSettings(limits_nano_usd=LIMITS), by=TESTER
    )
    for team in TEAMS:
        settings = LevelSettings(limits_nano_usd=LIMITS, tokens_per_minute=10**9)
        await stores.teams.create(WORKSPACE, team, settings, by=TESTER)
    new = NewKey(
        workspace_id=WORKSPACE,
        label="test",
        requests_per_minute=60_000_000,
        burst=1_000_000,
        tokens_per_minute=10**9,
        limits_nano_usd=LIMITS,
        quotas="usd/month=1000,requests/second=100000",
    )
    each = (new, replace(new, team_id=TEAMS[0]), replace(new, team_id=TEAMS[0], member_id=MEMBER))
    keys = [
        await stores.keys.create(replace(it, label=f"test {place}"), by=TESTER)
        for place, it in enumerate(each)
    ]
    await client.close()
    return tables, keys


async def _watch(
    stores: DynamoStores, keys: Sequence[str], findings: Findings, done: asyncio.Event
) -> None:
    """I1, I2 and I6 at any moment; costs never exceed their holds here, so nothing is negative."""
    states = [
        *(key_state_key(key_id) for key_id in keys),
        *(
            level_state_key(level, WORKSPACE, name, slice_)
            for level, name in (*SLICED, ("team", TEAMS[1]))
            for slice_ in range(SLICES_MAX)
        ),
    ]
    while not done.is_set():
        for item in await stores.wallets.items(WORKSPACE, 16):
            check_shard(item, findings)
        for item in await get_items(stores.client, stores.tables.ledger, states):
            check_state(item, findings)
        findings.counts["looks"] += 1
        await asyncio.sleep(0.05)


async def _sweep(stores: DynamoStores, findings: Findings, done: asyncio.Event) -> None:
    while not done.is_set():
        await asyncio.sleep(0.5)
        with suppress(*_CALLED_OFF):
            await stores.sweeper.run()
        with suppress(*_CALLED_OFF):
            findings.counts["expired"] += await _lots(stores).expire(WORKSPACE)
    # Not what its reports say: a sweep that is killed has settled, and makes none.
    now_s = int(stores.clock.now_s())
    wanted = GenerationFilter(since_s=now_s - 3 * DAY_S, until_s=now_s + DAY_S)
    page = await stores.generations.page(WORKSPACE, wanted, limit=10_000)
    findings.counts["swept"] = sum(record.outcome == "lost" for record in page.found)


async def _enter(stores: DynamoStores, findings: Findings, done: asyncio.Event) -> None:
    """Credit comes, some that expires, and some is taken back; each entry is repeated until it has
    an answer."""
    for entry in itertools.count():
        if done.is_set() and not owed(stores, "entry"):
            return
        await asyncio.sleep(0.1)
        amount = -1_000 if entry % 4 == 3 else 3_000
        while True:
            try:
                await stores.credits.enter(
                    CreditEntry(
                        id=f"entry-{entry}",
                        workspace_id=WORKSPACE,
                        kind="grant" if amount > 0 else "adjustment",
                        amount_nano_usd=amount,
                        note="test",
                        created_s=int(stores.clock.now_s()),
                        expires_s=_ends_s(stores) if entry % 4 == 1 else None,
                    ),
                    by=TESTER,
                )
            except RequestError:
                break
            except _CALLED_OFF:
                await asyncio.sleep(0)
            else:
                findings.counts["entered"] += amount > 0
                break


async def _move(
    stores: DynamoStores, draw: random.Random, findings: Findings, done: asyncio.Event
) -> None:
    """Credit goes from shard to shard."""
    while not done.is_set() or owed(stores, "move"):
        await asyncio.sleep(0.1)
        shards = range((await stores.workspaces.ensure(WORKSPACE, by=TESTER)).shards)
        if len(shards) < 2:
            continue
        source, target = draw.sample(shards, 2)
        with suppress(*_CALLED_OFF):
            findings.counts["moved"] += await stores.wallets.move(
                WORKSPACE,
                draw.randint(1, 2_000),
                source=source,
                target=target,
                token=os.urandom(8).hex(),
            )


async def _meddle(
    stores: DynamoStores, draw: random.Random, findings: Findings, done: asyncio.Event
) -> None:
    """Administer meanwhile: grow the workspace, lock it, disable keys."""
    keys = (await stores.keys.list(WORKSPACE)).found
    await asyncio.sleep(0.5)
    findings.counts["grown"] += await stores.workspaces.grow(WORKSPACE)
    while not done.is_set():
        await asyncio.sleep(0.3)
        with suppress(GatewayError, StoreError):
            key = draw.choice(keys)
            await disable(stores, key.id, WORKSPACE)
            await stores.workspaces.set_locked(WORKSPACE, locked=True, by=TESTER)
            await asyncio.sleep(0.05)
            await stores.workspaces.set_locked(WORKSPACE, locked=False, by=TESTER)
            team = draw.choice(TEAMS) if key.team_id else None
            await stores.keys.change(
                WORKSPACE, key.id, lambda it, team=team: _enabled(it, team), by=TESTER
            )
            findings.counts["stopped"] += 1


def _lots(stores: DynamoStores) -> CreditLots:
    ids = IdSource(stores.clock)
    return CreditLots(stores.client, stores.tables, stores.wallets, ids=ids, clock=stores.clock)


def _ends_s(stores: DynamoStores) -> int:
    return int(stores.clock.now_s()) + 300


async def _audit(stores: DynamoStores, findings: Findings) -> None:
    """Everything at rest: I1 to I7, I9 to I12."""
    await _lots(stores).expire(WORKSPACE)
    balance = await stores.credits.balance(WORKSPACE)
    due = [lot.id for lot in balance.lots if lot.expires_s <= stores.clock.now_s()]
    findings.check(not due or not balance.available_nano_usd, f"I9: {due} are not taken back")
    left = sum(lot.left_nano_usd for lot in balance.lots)
    unspent = balance.granted_nano_usd - balance.spent_nano_usd
    findings.check(left <= unspent, f"I9: {left} is left of lots, {unspent} of all credit")
    shards = await stores.wallets.items(WORKSPACE, 16)
    ledger = await scan_items(stores.client, stores.tables.ledger)
    keys = [item for item in ledger if read_text(item, "pk").startswith("K#")]
    records = await scan_items(stores.client, stores.tables.generations)
    for item in shards:
        check_shard(item, findings)
    granted = sum(read_number(item, "gr") for item in shards)
    entries = await all_rows(stores.client, stores.tables.core, f"W#{WORKSPACE}", "L#")
    entered = sum(read_number(item, "amt") for item in entries)
    findings.check(granted == entered, f"I3: granted {granted}, entered {entered}")
    single = {read_text(item, "id") for item in entries}
    findings.check(len(single) == len(entries), f"I3: {len(entries)} rows of {len(single)} entries")
    expired = -sum(read_number(item, "amt") for item in entries if "expiry" in item["kind"]["S"])
    dated = sum(read_number(item, "amt") for item in entries if "ex" in item)
    findings.check(expired <= dated, f"I9: {expired} was taken back of {dated}")
    answered = findings.counts["entered"] + 1
    given = sum(read_number(item, "amt") > 0 for item in entries)
    findings.check(given == answered, f"I3: {answered} grants were answered, {given} are there")
    spent = sum(read_number(item, "sp") for item in shards)
    recorded = sum(read_number(item, "c") for item in records)
    findings.check(spent == recorded, f"I4: spent {spent}, recorded {recorded}")
    by_keys = sum(read_number(item, "us") for item in keys)
    findings.check(spent == by_keys, f"I10: spent {spent}, by keys {by_keys}")
    await _audit_levels(stores, ledger, findings)
    sessions = [item for item in ledger if read_text(item, "pk").startswith("A#")]
    in_sessions = {read_text(item, "pk").split("#")[1] for item in sessions}
    of_keys = [item for item in keys if read_text(item, "pk").removeprefix("K#") in in_sessions]
    committed = sum(read_number(item, "cm") for item in sessions)
    spent = sum(read_number(item, "us") for item in of_keys)
    findings.check(committed == spent, f"I12: sessions {committed}, their keys {spent}")
    findings.counts["sessions"] = len(sessions)
    held = [item for item in ledger if item["h"]["M"]]
    findings.check(not held, f"I7: {len(held)} items hold something at rest")
    for item in keys:
        check_state(item, findings)
    findings.counts["records"] = len(records)


async def _audit_levels(stores: DynamoStores, ledger: Sequence[Item], findings: Findings) -> None:
    """I6 and I11: together the teams spent what the keys did that were always in one of them."""
    summaries = (await stores.keys.list(WORKSPACE)).found
    for initial, of in (("P", "member_id"), ("T", "team_id")):
        levels = [item for item in ledger if read_text(item, "pk").startswith(f"{initial}#")]
        found = sum(read_number(item, "us") for item in levels)
        spent = sum(key.spent_nano_usd for key in summaries if getattr(key, of))
        findings.check(found == spent, f"I11: keys with a {of} spent {spent}, levels {found}")
        findings.counts[f"{of} spent"] += found
        parts: Counter[str] = Counter()
        for item in levels:
            check_state(item, findings)
            for limit in ("ld", "lw", "lm", "lt"):
                name = "#".join(read_text(item, "pk").split("#")[:3])
                parts[f"{limit} of {name}"] += read_number(item, limit)
        for name, limit in parts.items():
            findings.check(limit == LIMIT, f"I6: the slices' {name} is {limit}")


def _enabled(settings: KeySettings, team: str | None) -> KeySettings:
    return replace(settings, disabled=False, team_id=team)
