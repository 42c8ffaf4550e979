"""Killed processes in the middle of work that is no chat: vectors, ranking, sound.

A request of each kind goes through the whole gateway over a real store, by a process that dies
before or after each of its writes. Then time passes and the sweeper runs. Whatever is left must add
up: nothing is held, what was spent is what the records say, and each record's bill is the one that
is recomputed from its trace, its usage and the catalog.

`python -m tests.faults.works <endpoint> [kind]...` prints the first violation of all kinds, or of
those that are named.
"""

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping
from contextlib import aclosing
from itertools import count

from tests.faults.administration import WRITES
from tests.faulty_client import Killed
from tests.gateways import app_over_stores
from tests.recomputed import find_wrong_bill
from tests.stores import (
    DynamoStores,
    HandClock,
    aws_client,
    dynamo_stores,
    fresh_tables,
    funded_key,
    scan_items,
)
from tests.works import CASES, WorkCase, home_of
from tollgate.aws.attributes import Item
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsCaller, AwsReply
from tollgate.core.records.generation import GenerationRecord
from tollgate.routing.planning.catalog import Catalog
from tollgate.stores.aws.decoding import read_number, read_numbers_by_name, read_text
from tollgate.stores.records.generations import read_record
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S

FUNDS_NANO_USD = 10**12
# A request has fewer writes; a loop that does not end is a violation too.
_WRITES_MAX = 32


class Dying:
    """A client whose process dies at its write number `fatal`, before or after it lands.

    Nothing is sent after that: neither what runs beside the write nor what would tidy up.
    """

    def __init__(self, client: AwsCaller, fatal: int, *, lands: bool) -> None:
        self._client = client
        self._left = fatal
        self._lands = lands
        self._sent: set[asyncio.Task[AwsReply]] = set()
        self.is_dead = False

    async def call(
        self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        if self.is_dead:
            raise Killed
        if operation in WRITES:
            self._left -= 1
        lives = operation not in WRITES or self._left != 0
        self.is_dead = not lives
        if lives or self._lands:
            call = self._client.call(operation, payload, attempts_max=attempts_max)
            sent = asyncio.create_task(call)
            self._sent.add(sent)
            # A dead process takes back nothing that it has sent.
            reply = await asyncio.shield(sent)
            if lives:
                return reply
        raise Killed

    async def wait_for_sent(self) -> None:
        """Wait until everything that was sent has landed, as it has when a sweeper runs."""
        if self._sent:
            await asyncio.wait(self._sent)


class WaitingClock(HandClock):
    """A clock that only tests move: a stream's guard against silence waits for as long as it says.

    It would write without end if a sleep took no time.
    """

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)


async def find_violations(
    endpoint_url: str, kinds: Collection[str] = ()
) -> AsyncGenerator[str, None]:
    """Yield what goes wrong, in words."""
    client = aws_client(endpoint_url, timeout_s=10.0)
    try:
        for name, case in CASES.items():
            if kinds and case.kind not in kinds:
                continue
            for lands in (False, True):
                for fatal in count(1):
                    place = f"{name}, killed {'after' if lands else 'before'} write {fatal}"
                    found, ended = await _die(client, case, fatal, lands=lands)
                    for what in found:
                        yield f"{place}: {what}"
                    if ended:
                        break
                    if fatal > _WRITES_MAX:
                        yield f"{place}: it does not end"
                        break
    finally:
        await client.close()


async def _die(
    client: AwsCaller, case: WorkCase, fatal: int, *, lands: bool
) -> tuple[list[str], bool]:
    """Return what is wrong afterwards, and whether the request came to its end."""
    clock = WaitingClock()
    tables = await fresh_tables(client)
    stores = dynamo_stores(client, tables, clock)
    secret, _ = await funded_key(stores, FUNDS_NANO_USD)
    home = await home_of(case)
    dying = Dying(client, fatal, lands=lands)
    app = app_over_stores(home, dynamo_stores(dying, tables, clock), clock)
    status: int | None = None
    try:
        reply = await case.ask(secret).run(app)
        status = reply.status if reply.complete else None
    except Killed:
        pass
    except BaseExceptionGroup as deaths:
        if deaths.split(Killed)[1] is not None:
            raise
    await dying.wait_for_sent()
    clock.now += HOLD_LIFETIME_S + 2
    await stores.sweeper.run()
    found = list(await _audit(stores, home.catalog, case, is_answered=status == 200))
    if not dying.is_dead and status != 200:
        found.append(f"nobody died, and the status is {status}")
    return found, not dying.is_dead


async def _audit(
    stores: DynamoStores, catalog: Catalog, case: WorkCase, *, is_answered: bool
) -> Iterator[str]:
    """What does not add up at rest: I1, I4, I7, I10 and the bill of each record."""
    ledger = await scan_items(stores.client, stores.tables.ledger)
    rows = await scan_items(stores.client, stores.tables.generations)
    return _differences(ledger, rows, catalog, case, is_answered=is_answered)


def _differences(
    ledger: list[Item], rows: list[Item], catalog: Catalog, case: WorkCase, *, is_answered: bool
) -> Iterator[str]:
    records = [read_record(item) for item in rows]
    yield from find_imbalances(ledger, records)
    if len(records) > 1 or (is_answered and not records):
        yield f"{len(records)} records of one request"
    for record in records:
        expected = case.cost_nano_usd if record.outcome == "ok" else 0
        if record.outcome not in ("ok", "lost") or record.cost_nano_usd != expected:
            yield f"a record is {record.outcome} and costs {record.cost_nano_usd}, not {expected}"
        if wrong := find_wrong_bill(record, catalog):
            yield wrong
    if is_answered and any(record.outcome != "ok" for record in records):
        yield "an answer was delivered whose record is lost"


def find_imbalances(ledger: list[Item], records: list[GenerationRecord]) -> Iterator[str]:
    """What does not add up between wallets, keys and records at rest: I1, I4, I7, I10."""
    keys = [item for item in ledger if read_text(item, "pk").startswith("K#")]
    wallets = [item for item in ledger if "gr" in item]
    spent = sum(read_number(item, "sp") for item in wallets)
    for item in wallets:
        held = sum(read_numbers_by_name(item, "h").values())
        total = read_number(item, "av") + held + read_number(item, "sp")
        if total != read_number(item, "gr"):
            yield f"I1: {total} of {read_number(item, 'gr')}"
    if any(item["h"]["M"] for item in ledger):
        yield "I7: something is held at rest"
    if spent != sum(record.cost_nano_usd for record in records):
        yield f"I4: spent {spent}, recorded {[record.cost_nano_usd for record in records]}"
    if spent != sum(read_number(item, "us") for item in keys):
        yield f"I10: spent {spent}, by keys {[read_number(item, 'us') for item in keys]}"


async def main(endpoint_url: str, *kinds: str) -> None:
    """Print the first violation."""
    async with aclosing(find_violations(endpoint_url, kinds)) as found:
        async for violation in found:
            print("VIOLATION", violation)
            return


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(main(*sys.argv[1:]))
