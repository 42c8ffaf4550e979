"""One process of generations behind a faulty network; it takes one order on its stdin."""

import asyncio
import json
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Callable

import msgspec
from msgspec import Struct

from tests.faults.clock import FastClock
from tests.faulty_client import Faults, FaultyAwsJson, Killed
from tests.stores import DynamoStores, client_of, dynamo_stores, record_of
from tollgate.core.errors import GatewayError
from tollgate.core.limits import SessionLimit
from tollgate.stores.aws.tables import Tables

# How long an answer takes, and a refused caller waits: an engine on two cores keeps up with this.
_PAUSE_MAX_S = 0.8
# A slow machine works on for so long until every write has met every fault.
OVERTIME_MAX_S = 60.0
_SELDOM = ("workspace_locked", "vanished", "settled twice")


class Order(Struct, frozen=True, kw_only=True):
    """The work of a worker process; the same start makes the same time in all of them."""

    endpoint_url: str
    tables: dict[str, str]
    secrets: list[str]
    workers: int
    seconds: float
    seed: int
    amount_max: int
    sites: list[str]
    fault_rate: float
    late_max_s: float
    started_s: float
    began_s: float

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()


async def main(order: Order) -> dict[str, int]:
    """Work until the time is over, no fault or lock is owed and all that is late has arrived."""
    clock = FastClock(order.started_s, order.began_s)
    client = client_of(FaultyAwsJson, order.endpoint_url, clock=clock, timeout_s=5.0)
    client.faults = faults = Faults(
        random.Random(order.seed), rate=order.fault_rate, late_max_s=order.late_max_s
    )
    stores = dynamo_stores(client, Tables(**order.tables), clock)
    counts: Counter[str] = Counter()
    ends_s = time.monotonic() + order.seconds

    def working() -> bool:
        late = time.monotonic() - ends_s
        # These are seldom or short, so that a process of a busy machine may not have met one yet.
        is_owed = bool(faults.owed(order.sites)) or not all(counts[it] for it in _SELDOM)
        return late < 0 or (late < OVERTIME_MAX_S and is_owed)

    await asyncio.gather(
        *(
            _worker(stores, order, random.Random(order.seed * 1000 + n), working, counts)
            for n in range(order.workers)
        )
    )
    await faults.all_delivered()
    await client.close()
    return {**counts, **faults.hits}


async def _worker(
    stores: DynamoStores,
    order: Order,
    draw: random.Random,
    working: Callable[[], bool],
    counts: Counter[str],
) -> None:
    await asyncio.sleep(draw.random() * _PAUSE_MAX_S)
    while working():
        try:
            counts[await _generation(stores, order, draw)] += 1
        except GatewayError as error:
            counts[error.code.value] += 1
            await asyncio.sleep(draw.random() * _PAUSE_MAX_S)
        except Killed:
            counts["killed"] += 1


async def _generation(stores: DynamoStores, order: Order, draw: random.Random) -> str:
    """One generation, ended in one of the ways that there are."""
    secret = draw.choice(order.secrets)
    principal = await stores.keys.authenticate(secret)
    covered = draw.random() < 0.3
    amount = draw.randint(1, order.amount_max)
    # All requests of the first key are in sessions, old and new.
    name = draw.choice(("a", "b", f"{draw.random()}"))
    session = SessionLimit(id=name, nano_usd=10**9) if secret == order.secrets[0] else None
    hold = await stores.ledger.hold(
        principal, amount, tokens=amount, covered=covered, session=session
    )
    await asyncio.sleep(draw.random() * _PAUSE_MAX_S)
    # Between rounds a generation may need more, several times over.
    while covered and draw.random() < 0.5:
        try:
            hold = await stores.ledger.top_up(hold, draw.randint(1, order.amount_max))
        except GatewayError:
            await asyncio.sleep(0)
    cost = draw.randint(0, min(hold.wallet_nano_usd, hold.key_nano_usd))
    if draw.random() < 0.03:
        return "vanished"
    await stores.ledger.settle(hold, record_of(hold, cost))
    if draw.random() < 0.1:
        await stores.ledger.settle(hold, record_of(hold, max(0, cost - 7), "cancelled"))
        return "settled twice"
    return "settled"


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    # Importing takes its time; the clock starts when the order comes.
    print("ready", flush=True)
    print(json.dumps(asyncio.run(main(Order(**json.loads(sys.stdin.readline()))))))
