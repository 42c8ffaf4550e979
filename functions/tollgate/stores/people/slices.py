"""Slices of the states of teams and members: made before one item throttles, and evened out."""

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
    """The slices of a level as an entry of the audit log has them."""

    slices: int


class LevelSlices:
    """The slices of all levels, in a round of maintenance.

    One round at a time is enough, several do no harm: every write has its condition.
    """

    def __init__(self, client: AwsCaller, tables: Tables, *, ids: IdSource, clock: Clock) -> None:
        self._tables = tables
        self._clock = clock
        self._writes = SliceWrites(client, tables.ledger, ids=ids, clock=clock)
        self._entries = AuditWriter(tables.core, ids=ids, clock=clock)

    async def care(self, level: AboveKey, row: Item, crowded: Mapping[LimitOwner, int]) -> bool:
        """Give a level more slices if it is crowded, else even its slices out.

        `crowded` has the holds of the states that have too many of them for one item. Returns
        whether the level has more slices than before.
        """
        # A change that waits for its state comes first, in the next round at the latest.
        if is_tombstone(row) or LevelItem.PENDING in row:
            return False
        owner = LimitOwner(level=level, id=id_of_row(row), workspace_id=workspace_of_row(row))
        slices, holds, settings = slices_of(row), crowded.get(owner, 0), READERS[level](row)
        # A level that has lost its limits may have holds of before, and a state with old limits.
        counted = counts_holds(settings, slices)
        if holds and counted and slices < SLICES_MAX and may_be_hot(settings):
            return await self.grow(level, row, holds)
        if slices > 1:
            await self._even_out(level, row, owner)
        return False

    async def grow(self, level: AboveKey, row: Item, holds: int) -> bool:
        """Give a level so many slices that each has few of its holds; False if it just got some."""
        owner = LimitOwner(level=level, id=id_of_row(row), workspace_id=workspace_of_row(row))
        was = slices_of(row)
        new = grown_count(was, holds)
        change = AuditedChange(
            action=f"{level}.grow",
            target=owner.id,
            workspace_id=owner.workspace_id,
            before=SlicesChange(slices=was),
            after=SlicesChange(slices=new),
        )
        write = LEVEL_GROW_FIRST if LevelItem.SLICES not in row else LEVEL_GROW
        values = {":new": number(new), ":rev": row[LevelItem.REVISION]}
        if LevelItem.SLICES in row:
            values[":was"] = number(was)
        update = {
            "TableName": self._tables.core,
            "Key": level_row_key(level, owner.workspace_id, owner.id),
            "UpdateExpression": write.update,
            "ConditionExpression": write.condition,
            "ExpressionAttributeValues": values,
        }
        entry = self._entries.puts(change, SWEEPER)
        return await self._writes.divide(
            self._division(level, row, owner, slices=new, others=({"Update": update}, *entry))
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
        others: tuple[object, ...] = (),
    ) -> Division:
        return Division(
            owner=owner,
            settings=state_settings(READERS[level](row)),
            revision=read_number(row, LevelItem.REVISION),
            was=slices_of(row),
            slices=slices,
            others=others,
        )
