"""Slices of team and member states: splits a state before DynamoDB throttles its item, and
rebalances slices.
"""

from collections.abc import Mapping

from msgspec import Struct

from tollgate.aws.attributes import Item, number
from tollgate.aws.aws_json import AwsCaller
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.limits import AboveKey, LimitOwner
from tollgate.core.records.audit import SWEEPER
from tollgate.stores.aws.decoding import read_number
from tollgate.stores.aws.expressions import LEVEL_GROW, LEVEL_GROW_FIRST
from tollgate.stores.aws.items import LevelItem
from tollgate.stores.aws.tables import Tables, level_row_key
from tollgate.stores.keys.slice_writes import Division, SliceWrites
from tollgate.stores.keys.state_items import read_key_state
from tollgate.stores.people.level_items import id_of_row, is_tombstone, slices_of, workspace_of_row
from tollgate.stores.people.pending import READERS
from tollgate.stores.records.audit_log import AuditWriter
from tollgate.stores.rules.audit_entries import AuditedChange
from tollgate.stores.rules.level_settings import counts_holds, state_settings
from tollgate.stores.rules.slices import SLICES_MAX, grown_count, is_uneven, may_be_hot


class SlicesChange(Struct, frozen=True):
    """The number of slices of a level as the audit log shows it."""

    slices: int


class LevelSlices:
    """Maintains the slices of all levels; concurrent rounds are safe."""

    def __init__(self, client: AwsCaller, tables: Tables, *, ids: IdSource, clock: Clock) -> None:
        self._tables = tables
        self._clock = clock
        self._writes = SliceWrites(client, tables.ledger, ids=ids, clock=clock)
        self._entries = AuditWriter(tables.core, ids=ids, clock=clock)

    async def maintain(self, level: AboveKey, row: Item, crowded: Mapping[LimitOwner, int]) -> bool:
        """Give a level more slices if it is crowded; otherwise rebalance its slices.

        `crowded` maps each owner whose state item has too many holds to their number. Returns
        whether the level got more slices.
        """
        # A pending change is completed first; the next round maintains the level's slices.
        if is_tombstone(row) or LevelItem.PENDING in row:
            return False
        owner = LimitOwner(level=level, id=id_of_row(row), workspace_id=workspace_of_row(row))
        slices, holds, settings = slices_of(row), crowded.get(owner, 0), READERS[level](row)
        # A level without limits may still have a state with old limits and holds, which is not
        # split.
        counted = counts_holds(settings, slices)
        if holds and counted and slices < SLICES_MAX and may_be_hot(settings):
            return await self.grow(level, row, holds)
        if slices > 1:
            await self._even_out(level, row, owner)
        return False

    async def grow(self, level: AboveKey, row: Item, holds: int) -> bool:
        """Split a level into more slices; return False if another process was first."""
        owner = LimitOwner(level=level, id=id_of_row(row), workspace_id=workspace_of_row(row))
        slices_before = slices_of(row)
        new = grown_count(slices_before, holds)
        change = AuditedChange(
            action=f"{level}.grow",
            target=owner.id,
            workspace_id=owner.workspace_id,
            before=SlicesChange(slices=slices_before),
            after=SlicesChange(slices=new),
        )
        write = LEVEL_GROW_FIRST if LevelItem.SLICES not in row else LEVEL_GROW
        values = {":new": number(new), ":rev": row[LevelItem.REVISION]}
        if LevelItem.SLICES in row:
            values[":was"] = number(slices_before)
        row_key = level_row_key(level, owner.workspace_id, owner.id)
        update = write.build(self._tables.core, row_key, values)
        entry = self._entries.puts(change, SWEEPER)
        return await self._writes.divide(
            self._division(
                level, row, owner, slices=new, extra_actions=({"Update": update}, *entry)
            )
        )

    async def _even_out(self, level: AboveKey, row: Item, owner: LimitOwner) -> None:
        slices = await self._writes.read(owner, slices_of(row))
        if is_uneven([read_key_state(item) for item in slices], int(self._clock.now_s())):
            await self._writes.divide(self._division(level, row, owner, slices=slices_of(row)))

    def _division(
        self,
        level: AboveKey,
        row: Item,
        owner: LimitOwner,
        *,
        slices: int,
        extra_actions: tuple[object, ...] = (),
    ) -> Division:
        return Division(
            owner=owner,
            settings=state_settings(READERS[level](row)),
            revision=read_number(row, LevelItem.REVISION),
            slices_before=slices_of(row),
            slices=slices,
            extra_actions=extra_actions,
        )
