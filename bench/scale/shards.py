"""The part of `make scale` that measures a wallet of several shards."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from random import Random
from time import monotonic
from typing import Final

from msgspec import Struct
from tests.capacity.engine import MemoryDynamo
from tests.capacity.partitions import Partitions
from tests.contract.test_workspaces import maintenance
from tests.stores import TESTER, DynamoStores, HandClock, dynamo_stores, record_of

from bench.scale.counted import Cost, CountedStore
from bench.scale.deployments import NOW_S, WORKSPACE, Template
from bench.scale.measure import Point
from tollgate.core.errors import GatewayError
from tollgate.core.principal import Principal
from tollgate.stores.aws.tables import Tables, create_tables
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.base import Hold

# A wallet grows by four shards at a time, up to sixteen.
_SHARDS: Final = (1, 4, 16)
_CREDIT_NANO_USD: Final = 10**15
_BOUND_NANO_USD: Final = 10_000
# Number of requests whose mean is a figure; more would make a shard grow.
_TIMES: Final = 20


class _Wallet(Struct, frozen=True):
    """A workspace with several shards, on an in-memory store without limits."""

    stores: DynamoStores
    counted: CountedStore
    principal: Principal


async def measure_shards(_template: Template) -> AsyncIterator[Sequence[Point]]:
    """Yield the costs for each number of shards of one wallet."""
    for shards in _SHARDS:
        yield await _points(await _make_wallet(shards), shards)


async def _points(wallet: _Wallet, shards: int) -> Sequence[Point]:
    stores = wallet.stores
    measured = partial(_measure, wallet, shards)
    holds: list[Hold] = []
    return [
        await measured("hold", lambda: _hold(wallet, holds), times=_TIMES),
        await measured("settle", lambda: _settle(wallet, holds), times=_TIMES),
        await measured("balance", lambda: stores.credits.balance(WORKSPACE)),
        await measured("round without a move", lambda: maintenance(stores).run()),
        await measured("round that spreads a grant", lambda: _spread(wallet)),
        await measured("audit", lambda: stores.audit.run()),
        await measured("hold on a wallet without credit", lambda: _refuse(wallet)),
    ]


async def _make_wallet(shards: int) -> _Wallet:
    memory = MemoryDynamo(Partitions(monotonic), Random(7), latency_s=0)
    tables = Tables(core="core", ledger="ledger", generations="generations")
    await create_tables(memory, tables)
    counted = CountedStore(memory)
    stores = dynamo_stores(counted, tables, HandClock(NOW_S))
    await stores.credits.grant(WORKSPACE, "first", _CREDIT_NANO_USD, "scale", by=TESTER)
    while (workspace := await stores.workspaces.read(WORKSPACE)) and workspace.shards < shards:
        await stores.workspaces.grow(WORKSPACE)
    await maintenance(stores).run()
    new = NewKey(
        workspace_id=WORKSPACE, label="scale", requests_per_minute=1_000_000, burst=100_000
    )
    created = await stores.keys.create(new, by=TESTER)
    principal = await stores.keys.authenticate(created.secret)
    return _Wallet(stores, counted, principal)


async def _hold(wallet: _Wallet, holds: list[Hold]) -> None:
    holds.append(await wallet.stores.ledger.hold(wallet.principal, _BOUND_NANO_USD))


async def _settle(wallet: _Wallet, holds: list[Hold]) -> None:
    hold = holds.pop()
    await wallet.stores.ledger.settle(hold, record_of(hold, _BOUND_NANO_USD // 2))


async def _refuse(wallet: _Wallet) -> None:
    """Hold everything on each shard until a hold is refused, which is the one to measure."""
    while True:
        wallet.counted.measured()
        try:
            await wallet.stores.ledger.hold(wallet.principal, 20 * _CREDIT_NANO_USD)
        except GatewayError:
            return


async def _spread(wallet: _Wallet) -> None:
    # Incoming money goes to one shard.
    credit = 10 * _CREDIT_NANO_USD
    await wallet.stores.credits.grant(WORKSPACE, "second", credit, "scale", by=TESTER)
    wallet.counted.measured()
    await maintenance(wallet.stores).run()


async def _measure(
    wallet: _Wallet,
    shards: int,
    name: str,
    operation: Callable[[], Awaitable[object]],
    *,
    times: int = 1,
) -> Point:
    wallet.counted.measured()
    for _ in range(times):
        await operation()
    whole = wallet.counted.measured()
    cost = Cost(
        calls=whole.calls // times,
        items=whole.items // times,
        read_units=whole.read_units / times,
        write_units=whole.write_units // times,
        cpu_ms=whole.cpu_ms / times,
    )
    return Point(operation=name, size=shards, cost=cost, memory_mb=None)
