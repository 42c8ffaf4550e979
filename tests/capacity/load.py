"""Load on the ledger at a rate that does not wait for answers, and what became of it."""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from msgspec.structs import replace

from tests.capacity.engine import MemoryDynamo
from tests.capacity.partitions import READ_UNITS, WRITE_UNITS, Partitions
from tests.stores import NOON_S, RETENTION_S, TESTER, DynamoStores, dynamo_stores, record_of
from tests.virtual_time import VirtualTimeLoop
from tollgate.core.errors import GatewayError
from tollgate.core.ids import IdSource
from tollgate.core.limits import LimitOwner
from tollgate.stores.aws.tables import Tables, create_tables, get_item, level_row_key
from tollgate.stores.keys.states import KeyStates
from tollgate.stores.keys.writes import KeyWrites
from tollgate.stores.money.budgets import Budgets
from tollgate.stores.money.credit_lots import CreditLots
from tollgate.stores.money.ledger import DynamoLedger
from tollgate.stores.money.settlements import SETTLED_WITHIN_S, Settlements
from tollgate.stores.money.wallets import Wallets
from tollgate.stores.money.workspace_maintenance import WorkspaceMaintenance
from tollgate.stores.people.level_items import slices_of
from tollgate.stores.people.pending import PendingLevels
from tollgate.stores.people.slices import LevelSlices
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.records.generations import DynamoGenerationStore
from tollgate.stores.rules.level_settings import LevelSettings

WORKSPACE = "acme"
TEAM = "search"
COST_NANO_USD = 1_234_567
_HELD_NANO_USD = 9_876_543
_CREDIT_NANO_USD = 10**16
_TOKENS = 1_000
# A hold is due for the sweeper 1,005 s after its id was made.
_SWEPT_AFTER_S = 1_100.0


class LoopTime:
    """The time of a virtual loop, as the clock of stores."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        self._loop = loop

    @property
    def now(self) -> float:
        return NOON_S + self._loop.now_s

    def now_s(self) -> float:
        return self.now

    def monotonic_s(self) -> float:
        return self._loop.now_s

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)


@dataclass(frozen=True)
class Shape:
    """Whom a load is spread over."""

    keys: int = 64
    shards: int = 1
    team: bool = False
    # Slices of the team at first.
    slices: int = 1
    # Processes whose guesses and caches differ.
    processes: int = 8
    answer_s: float = 2.0
    partitions: int | None = None
    write_units: float = WRITE_UNITS
    read_units: float = READ_UNITS
    # Seconds between two rounds of maintenance, None for none.
    maintained_every_s: float | None = None
    seed: int = 7


@dataclass
class Outcome:
    """What became of a load."""

    asked: int = 0
    served: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    # Writes and reads that were throttled, by the kind of their partition key.
    throttled: Counter[str] = field(default_factory=Counter)
    # Seconds of the loop.
    first_throttled_s: float | None = None
    last_refused_s: float = 0.0
    # Second and number of shards of each growth.
    grown: list[tuple[float, int]] = field(default_factory=list)
    # Second and number of slices of the team, each time it got more.
    sliced: list[tuple[float, int]] = field(default_factory=list)
    # Holds of any item that are left when all answers have ended, a minute later, and once swept.
    left_held: int = 0
    left_a_minute: int = 0
    left_swept: int = 0
    differences: Sequence[object] = ()


class CapacityRun:
    """A workspace under load, on the real ledger over a store in memory."""

    def __init__(self, shape: Shape, loop: VirtualTimeLoop) -> None:
        self.shape = shape
        self.outcome = Outcome()
        self._clock = LoopTime(loop)
        self._random = Random(shape.seed)
        self.partitions = Partitions(
            self._clock.monotonic_s,
            partitions=shape.partitions,
            write_units=shape.write_units,
            read_units=shape.read_units,
        )
        self.client = MemoryDynamo(self.partitions, self._random)
        self.tables = Tables(core="core", ledger="ledger", generations="generations")
        self._secrets: list[str] = []
        # A source apart from the load: another form of ids leaves the times of requests unchanged.
        self._ids = IdSource(self._clock, Random(shape.seed).randbytes)
        self.processes: list[tuple[DynamoStores, DynamoLedger]] = []

    async def prepare(self) -> None:
        """Make a workspace with its credit, keys and team; nothing is limited meanwhile."""
        await create_tables(self.client, self.tables)
        self.processes = [self._process() for _ in range(self.shape.processes)]
        stores, _ = self.processes[0]
        await stores.credits.grant(WORKSPACE, "first", _CREDIT_NANO_USD, "test", by=TESTER)
        while (await stores.workspaces.read(WORKSPACE)).shards < self.shape.shards:
            await stores.workspaces.grow(WORKSPACE)
        await self.maintenance().run()
        if self.shape.team:
            settings = LevelSettings(limits_nano_usd={"month": _CREDIT_NANO_USD})
            await stores.teams.create(WORKSPACE, TEAM, settings, by=TESTER)
            while await self._slices() < self.shape.slices:
                team = LimitOwner(level="team", id=TEAM, workspace_id=WORKSPACE)
                await self.maintenance().run({team: 1})
        new = NewKey(
            workspace_id=WORKSPACE,
            label="load",
            requests_per_minute=1_000_000,
            burst=1_000_000,
            team_id=TEAM if self.shape.team else None,
        )
        for place in range(self.shape.keys):
            created = await stores.keys.create(replace(new, label=f"load {place}"), by=TESTER)
            self._secrets.append(created.secret)
        self.partitions.limited = True

    async def drive(self, rate: Callable[[float], float], duration_s: float) -> None:
        """Ask at `rate(second)` requests a second, at random moments, and wait for the answers."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        asking: set[asyncio.Task[None]] = set()
        caring = asyncio.create_task(self._maintain())
        while (at_s := loop.time() - began_s) < duration_s:
            await asyncio.sleep(-math.log(1 - self._random.random()) / rate(at_s))
            task = asyncio.create_task(self._ask())
            asking.add(task)
            task.add_done_callback(asking.discard)
        while asking:
            await asyncio.gather(*asking)
        caring.cancel()
        self.outcome.throttled = self.partitions.throttled

    async def close(self) -> None:
        """Count what is still held, sweep it once it is due, and audit the books."""
        self.outcome.left_held = self._count_holds()
        self.partitions.limited = False
        stores, _ = self.processes[0]
        await asyncio.sleep(SETTLED_WITHIN_S + 1)
        self.outcome.left_a_minute = self._count_holds()
        await asyncio.sleep(_SWEPT_AFTER_S)
        await stores.sweeper.run()
        self.outcome.left_swept = self._count_holds()
        self.outcome.differences = await stores.audit.run()

    def _count_holds(self) -> int:
        rows = self.client.tables[self.tables.ledger].values()
        return sum(len(row.item["h"]["M"]) for row in rows if "h" in row.item)

    async def _slices(self) -> int:
        row = await get_item(self.client, self.tables.core, level_row_key("team", WORKSPACE, TEAM))
        return 1 if row is None else slices_of(row)

    def maintenance(self) -> WorkspaceMaintenance:
        """Make the maintenance of workspaces, as the sweeper has it."""
        stores, _ = self.processes[0]
        clock, ids = self._clock, self._ids
        return WorkspaceMaintenance(
            self.client,
            self.tables,
            wallets=stores.wallets,
            workspaces=stores.workspaces,
            budgets=Budgets(self.client, self.tables, stores.workspaces, (), ids=ids, clock=clock),
            lots=CreditLots(self.client, self.tables, stores.wallets, ids=ids, clock=clock),
            key_writes=KeyWrites(self.client, self.tables, ids=ids, clock=clock),
            levels=PendingLevels(self.client, self.tables, ids=ids, clock=clock),
            slices=LevelSlices(self.client, self.tables, ids=ids, clock=clock),
            ids=ids,
            clock=clock,
        )

    def _process(self) -> tuple[DynamoStores, DynamoLedger]:
        """Make the stores of one more process; its ids come from the seed."""
        client, tables, clock = self.client, self.tables, self._clock
        generations = DynamoGenerationStore(client, tables.generations, retention_s=RETENTION_S)
        ledger = DynamoLedger(
            Wallets(client, tables.ledger),
            KeyStates(client, tables.ledger, clock),
            generations,
            Settlements(clock, self._ids),
            ids=self._ids,
            clock=clock,
        )
        return dynamo_stores(client, tables, clock, self._ids), ledger

    async def _ask(self) -> None:
        stores, ledger = self._random.choice(self.processes)
        self.outcome.asked += 1
        try:
            principal = await stores.keys.authenticate(self._random.choice(self._secrets))
            hold = await ledger.hold(principal, _HELD_NANO_USD, tokens=_TOKENS)
        except GatewayError as refusal:
            self.outcome.refused[refusal.code.value] += 1
            self.outcome.last_refused_s = asyncio.get_running_loop().time()
            self._note_throttling()
            return
        await asyncio.sleep(self.shape.answer_s * self._random.uniform(0.5, 1.5))
        try:
            await ledger.settle(hold, record_of(hold, COST_NANO_USD))
        except GatewayError as unsettled:
            self.outcome.refused[f"after the answer: {unsettled.code.value}"] += 1
        else:
            self.outcome.served += 1
        self._note_throttling()

    def _note_throttling(self) -> None:
        if self.outcome.first_throttled_s is None and self.partitions.throttled:
            self.outcome.first_throttled_s = asyncio.get_running_loop().time()

    async def _maintain(self) -> None:
        every_s = self.shape.maintained_every_s
        if every_s is None:
            return
        loop, maintenance = asyncio.get_running_loop(), self.maintenance()
        while True:
            await asyncio.sleep(every_s)
            stores, _ = self.processes[0]
            swept = await stores.sweeper.run()
            care = await maintenance.run(swept.crowded)
            if care.grown:
                workspace = await stores.workspaces.read(WORKSPACE)
                self.outcome.grown.append((loop.time(), workspace.shards))
            if care.sliced:
                self.outcome.sliced.append((loop.time(), await self._slices()))


def run_load(shape: Shape, rate: Callable[[float], float], duration_s: float) -> Outcome:
    """Run a load on a loop of its own, on simulated time, and return what became of it."""
    loop = VirtualTimeLoop()

    async def run() -> Outcome:
        load = CapacityRun(shape, loop)
        await load.prepare()
        await load.drive(rate, duration_s)
        await load.close()
        return load.outcome

    try:
        return loop.run_until_complete(run())
    finally:
        loop.close()
