"""Maintains the shards, locks, keys, levels and budgets of workspaces every few minutes."""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from msgspec import Struct

from tollgate.aws.attributes import Item
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import (
    CorruptItem,
    StoreUnavailable,
    refusing_when_unavailable,
    repeat_while_refused,
)
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.limits import AboveKey, LimitOwner
from tollgate.stores.aws.decoding import read_number
from tollgate.stores.aws.holds import hold_count
from tollgate.stores.aws.items import KeyPointerItem, WalletItem
from tollgate.stores.aws.tables import Tables
from tollgate.stores.aws.visits import visit_workspaces
from tollgate.stores.keys.reminders import RotationReminders
from tollgate.stores.keys.writes import KeyWrites
from tollgate.stores.money.budgets import Budgets
from tollgate.stores.money.credit_lots import CreditLots, shard_number
from tollgate.stores.money.wallets import Wallets
from tollgate.stores.money.workspace_items import lock_of
from tollgate.stores.money.workspaces import Workspaces
from tollgate.stores.people.level_items import id_of_row
from tollgate.stores.people.pending import PendingLevels
from tollgate.stores.people.slices import LevelSlices
from tollgate.stores.ports.administration import Workspace
from tollgate.stores.rules.account import HOLDS_CROWDED
from tollgate.stores.rules.reports import MaintenanceReport

_log = logging.getLogger(__name__)

# A shard with less than half (1 / `_SHORT_PART`) of the average credit gets more from the richest
# one.
_SHORT_PART: Final = 2
# Maximum number of workspaces visited at a time. Ten thousand workspaces take a few hundred
# thousand calls, which must end before the next round.
_AT_ONCE_MAX: Final = 16
# Maximum time for retrying a write to a throttled item. It is long because the write competes with
# the item's load, and the next round is minutes away.
_INSISTS_FOR_S: Final = 20.0
_PAUSE_MAX_S: Final = 0.2
_NONE: Final[Mapping[LimitOwner, int]] = {}

_Written = TypeVar("_Written")


class WorkspaceMaintenance(Struct, frozen=True):
    """Maintains all workspaces; concurrent rounds are safe because every write is conditional."""

    client: AwsCaller
    tables: Tables
    wallets: Wallets
    workspaces: Workspaces
    budgets: Budgets
    lots: CreditLots
    key_writes: KeyWrites
    levels: PendingLevels
    slices: LevelSlices
    ids: IdSource
    clock: Clock

    async def run(self, crowded: Mapping[LimitOwner, int] = _NONE) -> MaintenanceReport:
        """Visit every workspace once.

        `crowded` maps each level whose state item has too many holds to their number.
        """
        visit = partial(self._visit, crowded)
        with refusing_when_unavailable():
            visits = await visit_workspaces(
                self.client, self.tables.core, visit, at_once=_AT_ONCE_MAX
            )
        counts: Counter[str] = sum(visits, Counter())
        return MaintenanceReport(
            workspaces=len(visits),
            grown=counts["grown"],
            sliced=counts["sliced"],
            expiries=counts["expiries"],
            moves=counts["moves"],
            alerts=counts["alerts"],
            failed=counts["failed"],
        )

    async def _visit(self, crowded: Mapping[LimitOwner, int], workspace_id: str) -> Counter[str]:
        """Run the maintenance of one workspace; return counts of changes and failures."""
        counts: Counter[str] = Counter()
        try:
            workspace = await self.workspaces.read(workspace_id)
            if workspace is None:
                return counts
            counts["grown"] += await self._settle_shards(workspace)
            await self._complete_keys(workspace_id, workspace.settings.key_days)
            counts += await self._divide(await self.levels.complete(workspace_id), crowded)
            counts["expiries"] += await self.lots.expire(workspace_id)
            counts["moves"] += await self._balance(workspace_id)
            counts["alerts"] += await self.budgets.check(workspace_id)
        except StoreUnavailable as unavailable:
            counts["failed"] = 1
            _log.warning("workspace %s has to wait: %s", workspace_id, unavailable)
        return counts

    async def _divide(
        self, levels: Sequence[tuple[AboveKey, Item]], crowded: Mapping[LimitOwner, int]
    ) -> Counter[str]:
        """Add slices to levels, or rebalance their slices; return counts, including failures.

        A corrupt level is skipped. After any other failure, the remaining levels wait for the next
        round, because the store is not accepting writes.
        """
        counts: Counter[str] = Counter()
        for level, row in levels:
            try:
                counts["sliced"] += await self._insist(
                    partial(self.slices.maintain, level, row, crowded)
                )
            except StoreUnavailable as unavailable:
                counts["failed"] = 1
                _log.warning("%s %s has to wait: %s", level, id_of_row(row), unavailable)
                if not isinstance(unavailable, CorruptItem):
                    break
        return counts

    async def _settle_shards(self, workspace: Workspace) -> bool:
        """Add shards to a crowded workspace, and complete interrupted changes of lock or shards."""
        shards = await self.wallets.items(workspace.id, workspace.shards)
        lock = lock_of(workspace)
        if any(read_number(shard, WalletItem.LOCKED) != lock for shard in shards):
            await self.workspaces.apply_lock(workspace.id)
        await self.workspaces.copy_to_secrets(workspace.id)
        counts = [hold_count(shard) for shard in shards]
        if max(counts, default=0) <= HOLDS_CROWDED and not any(
            WalletItem.CROWDED in shard for shard in shards
        ):
            return False
        grown = await self.workspaces.grow(workspace.id, holds=sum(counts))
        # A throttled shard needs retries, because its credit must be spread over the new shards.
        for shard in range(workspace.shards):
            await self._insist(partial(self.wallets.uncrowd, workspace.id, shard))
        return grown

    async def _complete_keys(self, workspace_id: str, key_days: int | None) -> None:
        """Complete changes to keys whose process died, and announce due rotations."""
        reminders = RotationReminders(self.client, self.tables, ids=self.ids, clock=self.clock)
        for pointer in await self.workspaces.key_pointers(workspace_id):
            if KeyPointerItem.PENDING in pointer:
                await self.key_writes.apply(pointer)
            if key_days is not None:
                await reminders.remind(pointer, key_days)

    async def _balance(self, workspace_id: str) -> int:
        """Move credit from the richest shard to poor shards; return the number of moves."""
        workspace = await self.workspaces.read(workspace_id)
        if workspace is None or workspace.shards == 1:
            return 0
        available = {
            shard_number(item): read_number(item, WalletItem.AVAILABLE)
            for item in await self.wallets.items(workspace_id, workspace.shards)
        }
        mean = sum(available.values()) // workspace.shards
        moves = 0
        for target, credit in sorted(available.items()):
            source = max(available, key=lambda shard: available[shard])
            amount = min(mean - credit, available[source] - mean)
            if credit * _SHORT_PART >= mean or amount <= 0:
                continue
            moved = await self._insist(
                partial(
                    self.wallets.move,
                    workspace_id,
                    amount,
                    source=source,
                    target=target,
                    token=self.ids.new_id(),
                )
            )
            if moved:
                moves += 1
                available[source] -= amount
                available[target] += amount
        return moves

    async def _insist(self, write: Callable[[], Awaitable[_Written]]) -> _Written:
        return await repeat_while_refused(
            write,
            self.clock,
            jitter=self.ids.uniform,
            for_s=_INSISTS_FOR_S,
            pause_max_s=_PAUSE_MAX_S,
        )
