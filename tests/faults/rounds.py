"""Killed processes in the middle of a generation in rounds.

A request with a tool goes through the engine over a real store. Its process dies before or after
each of its writes, when a round begins, or while a tool runs; or its caller leaves there. Then time
passes and the sweeper runs. Nothing may be held, what was spent is what the record says, and the
record's bill is the one that is recomputed from the usage of its rounds and its runs.

`python -m tests.faults.rounds <endpoint> [way]...` prints the first violation.
"""

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Final, Literal

from msgspec.structs import replace

from tests.faults.works import Dying, WaitingClock, find_imbalances
from tests.faulty_client import Killed
from tests.gateways import House, house
from tests.recomputed import find_wrong_bill
from tests.scripted import Scripted, answers, frame
from tests.scripted_tools import QUERY, ScriptedTools, asks, with_tools
from tests.stores import (
    DynamoStores,
    aws_client,
    dynamo_stores,
    fresh_tables,
    funded_key,
    scan_items,
)
from tests.upstream.openai_chunks import chunk, usage
from tollgate.aws.attributes import Item
from tollgate.aws.aws_json import AwsCaller
from tollgate.core.errors import GatewayError
from tollgate.core.ids import IdSource
from tollgate.core.principal import Admission
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.server_tools import ServerTool
from tollgate.engine.generate import generate
from tollgate.providers.ports.base import Frame, Timeouts, WireRequest
from tollgate.stores.records.generations import read_record
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S
from tollgate.tools.ports.base import RunReport

FUNDS_NANO_USD = 10**12
# A request has fewer of each; a loop that does not end is a violation too.
_PLACES_MAX = 40
# Two searches, one after the other, and the answer; the second prompt makes a covered hold grow.
_DEAR = frame(chunk(usage=usage(90_000, 2)))
_ADMISSIONS: Final[tuple[Admission, ...]] = ("positive", "covered")
_SEARCHING = asks(("web_search", QUERY))
_DEAR_SEARCHING = [*_SEARCHING[:-2], _DEAR, *_SEARCHING[-1:]]
_SAID = (_SEARCHING, _DEAR_SEARCHING, _DEAR_SEARCHING, answers("It ", "rains."))


class Fate:
    """The end of the process, or of its caller's patience, at one place of its way."""

    def __init__(self, dying: Dying, place: int, *, leaves: bool) -> None:
        self.happened = False
        self.caller: asyncio.Task[None] | None = None
        self._dying = dying
        self._left = place
        self._leaves = leaves

    def meet(self) -> None:
        """Pass one place; at the fated one the caller leaves, or the process dies."""
        self._left -= 1
        if self._left:
            return
        self.happened = True
        if not self._leaves:
            self._dying.is_dead = True
            raise Killed
        if self.caller is not None:
            self.caller.cancel()


class FatedProvider(Scripted):
    """A provider at which a fate waits as each answer begins."""

    fate: Fate | None = None

    @asynccontextmanager
    async def open(
        self, request: WireRequest, timeouts: Timeouts
    ) -> AsyncIterator[AsyncIterator[Sequence[Frame]]]:
        if self.fate is not None:
            self.fate.meet()
        async with super().open(request, timeouts) as frames:
            await asyncio.sleep(0)
            yield frames


class FatedTools(ScriptedTools):
    """Tools at which a fate waits while they run."""

    fate: Fate | None = None

    async def run(
        self, tool: ServerTool, arguments: Mapping[str, object], *, remaining_s: float
    ) -> RunReport:
        report = await super().run(tool, arguments, remaining_s=remaining_s)
        if self.fate is not None:
            self.fate.meet()
            await asyncio.sleep(0)
        return report


@dataclass(frozen=True, kw_only=True)
class Way:
    """Where a generation ends early: at a write, as a round begins, or while a tool runs."""

    place: Literal["write", "round", "run"]
    lands: bool = False
    """True if the write is done before the process dies."""
    leaves: bool = False
    """True if the caller leaves, in place of the process dying."""


WAYS: Final[Mapping[str, Way]] = {
    "dies before a write": Way(place="write"),
    "dies after a write": Way(place="write", lands=True),
    "dies as a round begins": Way(place="round"),
    "dies while a tool runs": Way(place="run"),
    "is left as a round begins": Way(place="round", leaves=True),
    "is left while a tool runs": Way(place="run", leaves=True),
}


async def find_violations(
    endpoint_url: str, ways: Collection[str] = ()
) -> AsyncGenerator[str, None]:
    """Yield what goes wrong, in words."""
    client = aws_client(endpoint_url, timeout_s=10.0)
    try:
        for name in ways or WAYS:
            for admission in _ADMISSIONS:
                for number in count(1):
                    place = f"{admission}, {name} {number}"
                    found, ended = await _try(client, WAYS[name], number, admission)
                    for what in found:
                        yield f"{place}: {what}"
                    if ended:
                        break
                    if number > _PLACES_MAX:
                        yield f"{place}: it does not end"
                        break
    finally:
        await client.close()


async def _try(
    client: AwsCaller, way: Way, number: int, admission: Admission
) -> tuple[list[str], bool]:
    """Return what is wrong afterwards, and whether the generation came to its end."""
    clock = WaitingClock()
    tables = await fresh_tables(client)
    stores = dynamo_stores(client, tables, clock)
    _, principal = await funded_key(stores, FUNDS_NANO_USD)
    at_write = way.place == "write"
    dying = Dying(client, number if at_write else 0, lands=way.lands)
    fate = Fate(dying, 0 if at_write else number, leaves=way.leaves)
    near, tools = FatedProvider(*_SAID), FatedTools()
    near.fate = fate if way.place == "round" else None
    tools.fate = fate if way.place == "run" else None
    home = await house(near=near)
    home.principal = principal
    home.gateway = replace(
        home.gateway,
        ledger=dynamo_stores(dying, tables, clock).ledger,
        clock=clock,
        ids=IdSource(clock),
        admission=admission,
        tools=tools,
    )
    call, reply = with_tools(home), home.reply()
    fate.caller = asyncio.create_task(generate(home.gateway, call, home.sink(call, reply)))
    await asyncio.wait({fate.caller})
    failure = None if fate.caller.cancelled() else fate.caller.exception()
    if failure is not None and not isinstance(failure, Killed | GatewayError):
        raise failure
    await dying.wait_for_sent()
    clock.now += HOLD_LIFETIME_S + 2
    await stores.sweeper.run()
    found = list(await _audit(stores, home, way, happened=fate.happened))
    ended = not dying.is_dead and not fate.happened
    if ended and not reply.ended:
        found.append("nothing happened, and there is no answer")
    return found, ended


async def _audit(stores: DynamoStores, home: House, way: Way, *, happened: bool) -> Iterator[str]:
    ledger = await scan_items(stores.client, stores.tables.ledger)
    rows = await scan_items(stores.client, stores.tables.generations)
    return _differences(ledger, [read_record(row) for row in rows], home, way, happened=happened)


def _differences(
    ledger: list[Item], records: list[GenerationRecord], home: House, way: Way, *, happened: bool
) -> Iterator[str]:
    yield from find_imbalances(ledger, records)
    if len(records) > 1:
        yield f"{len(records)} records of one request"
    for record in records:
        expected = {"cancelled"} if way.leaves and happened else {"ok", "lost"}
        if record.outcome not in expected:
            yield f"a record is {record.outcome}, not {expected}"
        if record.outcome == "lost":
            if record.cost_nano_usd:
                yield f"what was lost costs {record.cost_nano_usd}"
        elif wrong := find_wrong_bill(record, home.catalog):
            yield wrong
        if record.outcome == "ok" and (len(record.rounds), len(record.runs)) != (4, 3):
            yield f"{len(record.rounds)} rounds, {len(record.runs)} runs"


async def main(endpoint_url: str, *ways: str) -> None:
    """Print the first violation."""
    async with aclosing(find_violations(endpoint_url, ways)) as found:
        async for violation in found:
            print("VIOLATION", violation)
            return


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(main(*sys.argv[1:]))
