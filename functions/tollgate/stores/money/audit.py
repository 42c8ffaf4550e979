"""The nightly audit, which recomputes the books from all stored items.

Requests are served during the audit, so sums of costs are compared with two bounds. Lower bound:
every generation that was settled before the audit has a record by the time the audit reads records.
Upper bound: every generation with a record at that time is settled, or has a hold, after the audit.
Without traffic, the two bounds are equal and the check is exact.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from tollgate.aws.attributes import Item
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import CorruptItem, refusing_when_unavailable
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.ids import created_s, is_id
from tollgate.core.limits import AboveKey
from tollgate.stores.aws.decoding import read_number, read_numbers_by_name, read_text
from tollgate.stores.aws.items import (
    AnyItem,
    CreditEntryItem,
    HoldingItem,
    KeyPointerItem,
    KeyStateItem,
    LevelItem,
    WalletItem,
)
from tollgate.stores.aws.record_items import ClosedDayItem, GenerationItem
from tollgate.stores.aws.row_ranges import all_rows, rows_between
from tollgate.stores.aws.tables import (
    Tables,
    generation_day,
    generation_key,
    get_items,
    key_state_key,
    level_rows_prefix,
    query_rows,
)
from tollgate.stores.aws.visits import visit_workspaces
from tollgate.stores.keys.rows import is_gone
from tollgate.stores.keys.state_items import read_key_state
from tollgate.stores.money.wallets import Wallets
from tollgate.stores.money.workspaces import Workspaces
from tollgate.stores.people.level_items import is_tombstone, slices_of, state_keys
from tollgate.stores.people.pending import READERS
from tollgate.stores.ports.administration import Workspace
from tollgate.stores.rules.account import UNLIMITED
from tollgate.stores.rules.level_settings import counts_holds
from tollgate.stores.rules.periods import PERIODS, TOTAL_BUCKET, day_name
from tollgate.stores.rules.reports import BrokenInvariant
from tollgate.stores.rules.slices import whole_limit

# Maximum number of attempts to read the books without a change in between; changes are rare.
_READS_MAX: Final = 3
# Number of records per page.
_PAGE: Final = 1_000
# Maximum number of workspaces audited at the same time; each has a page of records in memory.
_AT_ONCE_MAX: Final = 8

# A function that reports a difference, given the name of the invariant, the expected value and the
# stored value.
_Compare = Callable[[str, int, int], None]


class _Books(Struct, frozen=True, kw_only=True):
    """The sums over a workspace's wallet shards and keys, from one read."""

    spent: int
    spent_by_keys: int
    held_by_wallets: frozenset[str]
    held_by_keys: frozenset[str]


class Audit(Struct, frozen=True):
    """Audits the books of all workspaces without changing anything."""

    client: AwsCaller
    tables: Tables
    wallets: Wallets
    workspaces: Workspaces
    clock: Clock
    retention_s: int

    async def run(self) -> Sequence[BrokenInvariant]:
        """Return the broken invariants of all workspaces.

        Raise LedgerError(service_unavailable) if the store cannot be reached.
        """
        with refusing_when_unavailable():
            visits = await visit_workspaces(
                self.client, self.tables.core, self._visit, at_once=_AT_ONCE_MAX
            )
        return [broken for visit in visits for broken in visit]

    async def _visit(self, workspace_id: str) -> Sequence[BrokenInvariant]:
        try:
            workspace = await self.workspaces.read(workspace_id)
            return () if workspace is None else await self._workspace(workspace)
        except CorruptItem as unreadable:
            return (_report_corrupt(workspace_id, unreadable),)

    async def _workspace(self, workspace: Workspace) -> Sequence[BrokenInvariant]:
        differences: list[BrokenInvariant] = []

        def compare(invariant: str, expected: int, found: int) -> None:
            if expected != found:
                differences.append(
                    BrokenInvariant(
                        workspace_id=workspace.id,
                        invariant=invariant,
                        expected_nano_usd=expected,
                        found_nano_usd=found,
                    )
                )

        before = await self._books(workspace, compare)
        total, closed = await self._sum_costs(workspace)
        after = await self._books(workspace, compare)
        costs = await self._costs_of(
            workspace.id,
            (
                id_
                for id_ in after.held_by_wallets | after.held_by_keys
                if is_id(id_) and day_name(created_s(id_)) not in closed
            ),
        )
        for invariant, first, last, held in (
            ("I4 spent by the wallet", before.spent, after.spent, after.held_by_wallets),
            ("I10 spent by keys", before.spent_by_keys, after.spent_by_keys, after.held_by_keys),
        ):
            # A record that was written after its day had been read can only lower the bound.
            unsettled = sum(cost for id_, cost in costs.items() if id_ in held)
            compare(invariant, total, max(first, total))
            compare(invariant, total - unsettled, min(last, total - unsettled))
        await self._compare_grants(workspace, compare)
        await self._compare_levels(workspace, compare)
        await self._compare_parts(workspace, compare)
        return differences

    async def _compare_levels(self, workspace: Workspace, compare: _Compare) -> None:
        """Check I6 for members and teams: the used part of a limit equals spending plus holds."""
        for level in READERS:
            rows = await all_rows(
                self.client, self.tables.core, f"W#{workspace.id}", level_rows_prefix(level)
            )
            keys = [key for row in rows for key in state_keys(level, row)]
            for state in await get_items(self.client, self.tables.ledger, keys):
                counted = read_key_state(state)
                used = counted.limits_nano_usd["total"] - counted.buckets.get(
                    TOTAL_BUCKET, counted.limits_nano_usd["total"]
                )
                held = sum(read_numbers_by_name(state, KeyStateItem.HOLDS).values())
                name = read_text(state, AnyItem.PARTITION)
                spent = read_number(state, KeyStateItem.SPENT)
                compare(f"I6 held + spent of {name}", used, held + spent)

    async def _compare_parts(self, workspace: Workspace, compare: _Compare) -> None:
        """Check I6 for slices: all slices exist, and their parts add up to the limit."""
        wrong: list[tuple[str, int, int]] = []
        for _ in range(_READS_MAX):
            wrong = [
                part for level in READERS for part in await self._list_wrong(workspace.id, level)
            ]
            if not wrong:
                return
        for invariant, expected, found in wrong:
            compare(invariant, expected, found)

    async def _list_wrong(self, workspace_id: str, level: AboveKey) -> list[tuple[str, int, int]]:
        """Return the differences between the limits in levels' items and in their states."""
        rows = [
            row
            for row in await all_rows(
                self.client, self.tables.core, f"W#{workspace_id}", level_rows_prefix(level)
            )
            if not (is_tombstone(row) or LevelItem.PENDING in row)
            and counts_holds(READERS[level](row), slices_of(row))
        ]
        keys = [key for row in rows for key in state_keys(level, row)]
        states = {
            read_text(state, AnyItem.PARTITION): state
            for state in await get_items(self.client, self.tables.ledger, keys)
        }
        wrong: list[tuple[str, int, int]] = []
        for row in rows:
            names = [read_text(key, AnyItem.PARTITION) for key in state_keys(level, row)]
            slices = [read_key_state(states[name]) for name in names if name in states]
            wrong.append((f"I6 slices of {names[0]}", len(names), len(slices)))
            limits = READERS[level](row).limits_nano_usd
            for period in PERIODS if slices else ():
                limit = limits.get(period, UNLIMITED)
                parts_limit = whole_limit([state.limits_nano_usd[period] for state in slices])
                wrong.append((f"I6 limit of {names[0]}, {period}", limit, parts_limit))
        return [
            (invariant, expected, stored)
            for invariant, expected, stored in wrong
            if expected != stored
        ]

    async def _compare_grants(self, workspace: Workspace, compare: _Compare) -> None:
        """Check I3: the credit entries add up to the credit that was granted to the shards."""
        granted = entered = 0
        for _ in range(_READS_MAX):
            granted = await self._sum_granted(workspace)
            rows = await all_rows(self.client, self.tables.core, f"W#{workspace.id}", "L#")
            entered = sum(read_number(row, CreditEntryItem.AMOUNT) for row in rows)
            if granted == entered:
                return
        compare("I3 granted", entered, granted)

    async def _sum_granted(self, workspace: Workspace) -> int:
        items = await self.wallets.items(workspace.id, workspace.shards)
        return sum(read_number(item, WalletItem.GRANTED) for item in items)

    async def _books(self, workspace: Workspace, compare: _Compare) -> _Books:
        shards = await self.wallets.items(workspace.id, workspace.shards)
        for shard in shards:
            held = sum(read_numbers_by_name(shard, WalletItem.HOLDS).values())
            total = (
                read_number(shard, WalletItem.AVAILABLE)
                + held
                + read_number(shard, WalletItem.SPENT)
            )
            compare("I1 available + held + spent", read_number(shard, WalletItem.GRANTED), total)
        pointers = await self.workspaces.key_pointers(workspace.id)
        spent_by_deleted = sum(
            read_number(pointer, KeyPointerItem.SPENT) for pointer in pointers if is_gone(pointer)
        )
        keys = [
            key_state_key(read_text(pointer, KeyPointerItem.KEY))
            for pointer in pointers
            if not is_gone(pointer)
        ]
        states = await get_items(self.client, self.tables.ledger, keys)
        return _Books(
            spent=sum(read_number(shard, WalletItem.SPENT) for shard in shards),
            spent_by_keys=spent_by_deleted
            + sum(read_number(state, KeyStateItem.SPENT) for state in states),
            held_by_wallets=_hold_ids(shards),
            held_by_keys=_hold_ids(states),
        )

    async def _sum_costs(self, workspace: Workspace) -> tuple[int, frozenset[str]]:
        """Return the cost of all generations, and the closed days.

        The roll-up stores the cost of a closed day in `D#<day>`. For an open day, the records are
        added up, one page at a time.
        """
        now_s = int(self.clock.now_s())
        rows = await all_rows(self.client, self.tables.core, f"W#{workspace.id}", "D#")
        closed = {
            read_text(row, AnyItem.SORT).removeprefix("D#"): read_number(row, ClosedDayItem.COST)
            for row in rows
        }
        total = sum(closed.values())
        # Tomorrow is included because the clock of another instance may be ahead.
        first_s = max(workspace.created_s - DAY_S, now_s - self.retention_s)
        for second in range(first_s, now_s + DAY_S + 1, DAY_S):
            if day_name(second) not in closed:
                total += await self._sum_day(generation_day(workspace.id, day_name(second)))
        return total, frozenset(closed)

    async def _sum_day(self, partition: str) -> int:
        total = 0
        after: Item | None = None
        while True:
            records, after = await query_rows(
                self.client, self.tables.generations, partition, "G#", after=after, limit=_PAGE
            )
            total += sum(read_number(record, GenerationItem.COST) for record in records)
            if after is None:
                return total

    async def _costs_of(self, workspace_id: str, ids: Iterable[str]) -> Mapping[str, int]:
        """Return the costs of the generations that have a record, by id."""
        costs: dict[str, int] = {}
        for id_ in ids:
            key = generation_key(workspace_id, id_)
            sort = read_text(key, AnyItem.SORT)
            for record in await rows_between(
                self.client,
                self.tables.generations,
                read_text(key, AnyItem.PARTITION),
                low=sort,
                high=sort,
                consistent=True,
            ):
                costs[id_] = read_number(record, GenerationItem.COST)
        return costs


def _report_corrupt(workspace_id: str, unreadable: CorruptItem) -> BrokenInvariant:
    """Return the broken invariant for a corrupt item in the books of a workspace."""
    return BrokenInvariant(
        workspace_id=workspace_id,
        invariant=f"I0 every item can be read: {unreadable.name}",
        expected_nano_usd=0,
        found_nano_usd=0,
    )


def _hold_ids(items: Sequence[Item]) -> frozenset[str]:
    return frozenset(id_ for item in items for id_ in read_numbers_by_name(item, HoldingItem.HOLDS))
