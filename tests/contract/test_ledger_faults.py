"""The books stay exact whatever the network and the processes do (design 7, ledger invariants).

I1 any consistent read of a shard: available + held + spent = granted. I4 spent = what the records
say, at rest. I6 a key's buckets, holds and spending add up to its limit. I8 a refused request
leaves nothing held. I10 keys spent what the workspace spent.

Keeps C61, C62.
"""

import asyncio
import os
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from tests.faulty_client import Faults, FaultyAwsJson, Killed
from tests.nightly import first
from tests.stores import (
    TESTER,
    DynamoStores,
    HandClock,
    client_of,
    dynamo_stores,
    fresh_tables,
    funded_key,
    record_of,
)
from tollgate.aws.attributes import Item
from tollgate.core.errors import GatewayError
from tollgate.core.principal import Principal
from tollgate.stores.aws.decoding import read_number, read_numbers_by_name, read_text
from tollgate.stores.aws.tables import key_state_key, wallet_key
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.records.generations import read_record
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S

WORKERS = 64
ROUNDS = 4
LIMIT = 10**9
# A key that nothing but money stops.
WIDE_KEY = NewKey(
    workspace_id="acme",
    label="test",
    requests_per_minute=6_000_000,
    burst=100_000,
    limits_nano_usd={"day": LIMIT, "total": LIMIT},
    quotas="usd/month=1,requests/hour=100000",
)


@dataclass
class Books:
    """Everything in the tables, read at rest."""

    wallets: list[Item]
    key: Item
    costs: dict[str, int]

    @property
    def spent(self) -> int:
        return sum(read_number(item, "sp") for item in self.wallets)


async def read_books(stores: DynamoStores, principal: Principal) -> Books:
    wallets = [await read(stores, wallet_key("acme", shard)) for shard in range(principal.shards)]
    records = (await stores.client.call("Scan", {"TableName": stores.tables.generations}))["Items"]
    return Books(
        wallets=wallets,
        key=await read(stores, key_state_key(principal.key_id)),
        costs={
            read_text(item, "sk").removeprefix("G#"): read_record(item).cost_nano_usd
            for item in records
        },
    )


async def read(stores: DynamoStores, key: Item) -> Item:
    reply = await stores.client.call(
        "GetItem", {"TableName": stores.tables.ledger, "Key": key, "ConsistentRead": True}
    )
    item: Item = reply["Item"]
    return item


def assert_shard_adds_up(item: Item, overrun_max: int = 0) -> None:
    held = sum(read_numbers_by_name(item, "h").values())
    total = read_number(item, "av") + held + read_number(item, "sp")
    assert total == read_number(item, "gr"), item
    assert read_number(item, "av") >= -overrun_max, item


def assert_key_adds_up(item: Item) -> None:
    held = sum(read_numbers_by_name(item, "h").values())
    for bucket in ("b_total", "b_20261121"):
        left = int(item[bucket]["N"]) if bucket in item else LIMIT
        assert left + held + read_number(item, "us") == LIMIT, item
    counted = [read_number(item, name) for name in item if name.startswith("c_usd/month/")]
    assert all(used == held + read_number(item, "us") for used in counted), item
    assert {name for name in item if name.startswith("q_")} == {
        f"q_{hold_id}" for hold_id in read_numbers_by_name(item, "h") if counted
    }


@pytest.fixture
async def processes(honest_url: str) -> AsyncIterator[list[DynamoStores]]:
    """Four processes over the same tables, each with its own caches and its own faulty network.

    The first has no faults and serves to look and to sweep.
    """
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}")
    clock = HandClock()
    clients = [client_of(FaultyAwsJson, honest_url, clock=clock, timeout_s=10.0) for _ in range(4)]
    for place, client in enumerate(clients[1:]):
        client.faults = Faults(random.Random(seed + place))
    tables = await fresh_tables(clients[0])
    yield [dynamo_stores(client, tables, clock) for client in clients]
    for client in clients:
        await client.close()


def faults(processes: list[DynamoStores]) -> list[Faults]:
    clients = [process.client for process in processes[1:]]
    return [it.faults for it in clients if isinstance(it, FaultyAwsJson) and it.faults]


async def work(
    process: DynamoStores, principal: Principal, draw: random.Random, amount_max: int
) -> None:
    """One worker: generations that end in every way, some of them never."""
    for _ in range(ROUNDS):
        try:
            hold = await process.ledger.hold(principal, draw.randint(1, amount_max))
            cost = draw.randint(0, min(hold.wallet_nano_usd, hold.key_nano_usd))
            await process.ledger.settle(hold, record_of(hold, cost))
            if draw.random() < 0.1:
                await process.ledger.settle(hold, record_of(hold, cost + 7, "cancelled"))
        except GatewayError:
            await asyncio.sleep(0)
        except Killed:
            return


async def monitor(stores: DynamoStores, principal: Principal, done: asyncio.Event) -> int:
    """Read the books while they change; how often."""
    reads = 0
    while not done.is_set():
        for shard in range(principal.shards):
            assert_shard_adds_up(await read(stores, wallet_key("acme", shard)))
        assert_key_adds_up(await read(stores, key_state_key(principal.key_id)))
        reads += 1
    return reads


async def run_workers(processes: list[DynamoStores], principal: Principal, amount_max: int) -> None:
    done = asyncio.Event()
    watching = asyncio.create_task(monitor(processes[0], principal, done))
    draw = random.Random(os.urandom(8))
    await asyncio.gather(
        *(
            work(processes[1 + n % 3], principal, random.Random(draw.random()), amount_max)
            for n in range(WORKERS)
        )
    )
    done.set()
    assert await watching > 0


async def sweep_until_at_rest(processes: list[DynamoStores]) -> None:
    for each in faults(processes):
        each.rate = 0
        await each.all_delivered()
    processes[0].clock.now += HOLD_LIFETIME_S + 1
    report = await processes[0].sweeper.run()
    assert report.found == report.settled
    assert (await processes[0].sweeper.run()).found == 0


def assert_exact_at_rest(books: Books) -> None:
    for wallet in books.wallets:
        assert_shard_adds_up(wallet)
        assert wallet["h"]["M"] == {}
    assert books.key["h"]["M"] == {}
    assert_key_adds_up(books.key)
    assert books.spent == sum(books.costs.values())
    assert books.spent == read_number(books.key, "us")


@pytest.mark.parametrize(("credit", "shards"), first(1, [(2_000, 1), (10**8, 1), (9_000, 3)]))
async def test_crashes_lost_replies_and_late_deliveries_leave_the_books_exact(
    processes: list[DynamoStores], credit: int, shards: int
) -> None:
    """Starved, rich and sharded wallets: the seeded bugs of either are not seen in the other."""
    await processes[0].workspaces.ensure("acme", shards=shards, by=TESTER)
    for grant in range(shards * 4):
        await processes[0].credits.grant(
            "acme", f"g{grant}", credit // (shards * 4), "test", by=TESTER
        )
    _, principal = await funded_key(processes[0], credit, WIDE_KEY)
    assert principal.shards == shards
    for each in faults(processes):
        each.rate = 0.2

    await run_workers(processes, principal, amount_max=500)
    await sweep_until_at_rest(processes)

    books = await read_books(processes[0], principal)
    assert_exact_at_rest(books)
    assert len(books.costs) > 0


async def test_64_holds_at_once_on_a_starved_wallet_never_overspend(
    processes: list[DynamoStores],
) -> None:
    _, principal = await funded_key(processes[0], 1_000, WIDE_KEY)

    outcomes = await asyncio.gather(
        *(processes[1 + n % 3].ledger.hold(principal, 37) for n in range(WORKERS)),
        return_exceptions=True,
    )

    held = [hold for hold in outcomes if not isinstance(hold, BaseException)]
    assert all(isinstance(o, GatewayError) for o in outcomes if isinstance(o, BaseException))
    assert sum(hold.wallet_nano_usd for hold in held) == 1_000
    assert all(hold.wallet_nano_usd > 0 for hold in held)
    wallet = await read(processes[0], wallet_key("acme", 0))
    assert_shard_adds_up(wallet)
    assert read_numbers_by_name(wallet, "h") == {hold.id: hold.wallet_nano_usd for hold in held}
    state = await read(processes[0], key_state_key(principal.key_id))
    assert read_numbers_by_name(state, "h") == {hold.id: hold.key_nano_usd for hold in held}


async def test_c62_holds_at_once_never_overdraw_a_limited_key(
    processes: list[DynamoStores],
) -> None:
    new = NewKey(workspace_id="acme", label="t", burst=1000, limits_nano_usd={"week": 1_000})
    _, principal = await funded_key(processes[0], 10**9, new)

    outcomes = await asyncio.gather(
        *(processes[1 + n % 3].ledger.hold(principal, 37) for n in range(WORKERS)),
        return_exceptions=True,
    )

    held = [hold for hold in outcomes if not isinstance(hold, BaseException)]
    assert sum(hold.key_nano_usd for hold in held) == 1_000
    assert all(hold.key_nano_usd > 0 for hold in held)
    balance = await processes[0].credits.balance("acme")
    assert balance.held_nano_usd == sum(hold.wallet_nano_usd for hold in held)


async def test_c61_requests_at_once_never_pass_the_burst(processes: list[DynamoStores]) -> None:
    new = NewKey(workspace_id="acme", label="t", requests_per_minute=1, burst=20)
    _, principal = await funded_key(processes[0], 10**9, new)

    outcomes = await asyncio.gather(
        *(processes[1 + n % 3].ledger.hold(principal, 1) for n in range(WORKERS)),
        return_exceptions=True,
    )

    assert len([hold for hold in outcomes if not isinstance(hold, BaseException)]) == 20
    assert (await processes[0].credits.balance("acme")).held_nano_usd == 20
