"""The books after a soak: swept, at rest, and beside what each caller was told."""

from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

from tests.clocks import ShiftedClock
from tests.soak.accounts import INPUT_NANO_USD, OUTPUT_NANO_USD, WORKSPACES
from tests.soak.callers import Told
from tests.soak.provider import INPUT_TOKENS
from tests.stores import scan_items
from tollgate.aws.attributes import Item
from tollgate.core.clock import DAY_S, SystemClock
from tollgate.core.records.activity import GenerationFilter
from tollgate.core.records.generation import GenerationRecord
from tollgate.settings import Settings
from tollgate.stores.aws.decoding import read_number, read_numbers_by_name, read_text
from tollgate.stores.rules.account import UNLIMITED
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S, SweepReport
from tollgate.wiring.stores import Stores, wire_stores
from tollgate.wiring.upkeep import wire_upkeep

# Beyond the life of a hold, in the clock of the last sweeps.
_LATER_S: Final = HOLD_LIFETIME_S + 5.0
_TIMEOUT_S: Final = 20.0
_PAGE: Final = 1_000


def open_books(settings: Settings, ahead_s: float = 0.0) -> Stores:
    """Open the stores as a scheduled function does, by a clock that is ahead."""
    return wire_stores(settings, ShiftedClock(ahead_s), timeout_s=_TIMEOUT_S)


async def sweep_books(settings: Settings, *, ahead_s: float = 0.0) -> SweepReport:
    """Do once what the schedule does every five minutes."""
    clock = ShiftedClock(ahead_s)
    async with (
        aclosing(wire_stores(settings, clock, timeout_s=_TIMEOUT_S)) as stores,
        aclosing(wire_upkeep(settings, stores, clock)) as upkeep,
    ):
        report = await upkeep.sweeper.run()
        await upkeep.maintenance.run(report.crowded)
        return report


async def find_holds(stores: Stores) -> frozenset[str]:
    """Return the ids of the generations that hold something anywhere."""
    items = await scan_items(stores.client, stores.tables.ledger)
    return frozenset(id_ for item in items for id_ in read_numbers_by_name(item, "h"))


async def check_books(
    settings: Settings,
    told: Sequence[Told],
    counts: Counter[str],
    *,
    calm: frozenset[str] = frozenset(),
) -> Sequence[str]:
    """Sweep once all holds are due, and return every violation of the books in words.

    `calm` are generations that no fault has touched: those leave nothing to the sweep.
    """
    violations: list[str] = []
    async with aclosing(open_books(settings)) as stores:
        held = await find_holds(stores)
        counts["holds left for the sweep"] = len(held)
        violations += [f"{id_} was delivered and not settled" for id_ in sorted(held & calm)]
        report = await sweep_books(settings, ahead_s=_LATER_S)
        counts["holds swept at the end"] = report.settled
        if report.settled != report.found:
            violations.append(f"the sweep found {report.found} and settled {report.settled}")
        left = await find_holds(stores)
        if left:
            violations.append(f"I7: {len(left)} holds outlive the sweep")
        for item in await scan_items(stores.client, stores.tables.ledger):
            violations += check_item(item)
        async with aclosing(wire_upkeep(settings, stores, SystemClock())) as upkeep:
            for broken in await upkeep.audit.run():
                found, expected = broken.found_nano_usd, broken.expected_nano_usd
                violations.append(f"audit: {broken.invariant}: {found} instead of {expected}")
        records = {
            record.id: record
            for workspace_id in WORKSPACES
            for record in await _records(stores, workspace_id)
        }
    counts.update(f"record {record.outcome}" for record in records.values())
    return [*violations, *check_bills(told, records, counts, calm=calm)]


def check_bills(
    told: Sequence[Told],
    records: dict[str, GenerationRecord],
    counts: Counter[str],
    *,
    calm: frozenset[str] = frozenset(),
) -> list[str]:
    """Compare what callers were told with what was billed to them."""
    violations: list[str] = []
    # Under an Idempotency-Key, but for answers that a fault kept from being stored.
    once: Counter[str] = Counter()
    delivered: Counter[str] = Counter()
    billed = {id_ for id_, record in records.items() if record.cost_nano_usd}
    explained: set[str] = set()
    # A caller that left, or lost its connection, may not have seen the id of its generation.
    without_id = 0
    for it in told:
        record = records.get(it.generation_id)
        cost = record.cost_nano_usd if record is not None else None
        if it.ending == "delivered":
            due = INPUT_TOKENS * INPUT_NANO_USD + it.words * OUTPUT_NANO_USD
            counts["replayed"] += it.replayed
            delivered[it.generation_id] += not it.replayed
            if not it.replayed and it.asked.idempotency_key and it.generation_id in calm:
                once[it.asked.idempotency_key] += 1
            if record is None or (record.outcome, cost) != ("ok", due):
                violations.append(f"{it.generation_id} costs {cost} instead of {due}")
            explained.add(it.generation_id)
        elif it.ending == "refused":
            if cost:
                violations.append(f"{it.generation_id} was refused ({it.code}) and costs {cost}")
        elif it.ending == "unreadable":
            violations.append(f"{it.asked.format_name} cannot be read: {it.code}")
        elif it.generation_id:
            explained.add(it.generation_id)
        else:
            without_id += it.ending != "away"
    violations += [
        f"{it} was delivered {count} times" for it, count in delivered.items() if count > 1
    ]
    violations += [f"{it} was generated {count} times" for it, count in once.items() if count > 1]
    counts["billed to callers that saw no id"] = len(billed - explained)
    if len(billed - explained) > without_id:
        violations.append(
            f"{len(billed - explained)} bills are of nobody, {without_id} callers saw no id"
        )
    return violations


def check_item(item: Item) -> list[str]:
    """Return the violations of one item of the ledger at rest: a shard, or a state."""
    name = read_text(item, "pk")
    held = sum(read_numbers_by_name(item, "h").values())
    if "gr" in item:
        total = read_number(item, "av") + held + read_number(item, "sp")
        return [] if total == read_number(item, "gr") else [f"I1: {name} adds up to {total}"]
    limit, used = read_number(item, "lm"), read_number(item, "us") + held
    months = [
        left for it, left in item.items() if it.startswith("b_") and len(it) == len("b_YYYYMM")
    ]
    if limit == UNLIMITED or not months:
        return []
    # A run may pass from one month into the next.
    spent = sum(limit - int(left["N"]) for left in months)
    return [] if spent == used else [f"I6: {name} counts {spent} in its months, spent {used}"]


async def _records(stores: Stores, workspace_id: str) -> list[GenerationRecord]:
    now_s = int(SystemClock().now_s())
    wanted = GenerationFilter(since_s=now_s - 2 * DAY_S, until_s=now_s + DAY_S)
    found: list[GenerationRecord] = []
    before: str | None = None
    while True:
        page = await stores.generations.page(workspace_id, wanted, limit=_PAGE, before=before)
        found += page.found
        if page.next is None:
            return found
        before = page.next
