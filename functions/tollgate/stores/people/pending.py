"""Pending changes to levels, which are in the level's item but not yet in its state."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tollgate.aws.attributes import Item, number
from tollgate.aws.aws_json import AwsCaller
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.limits import AboveKey, LimitOwner
from tollgate.stores.aws.decoding import read_number
from tollgate.stores.aws.expressions import KEY_APPLIED
from tollgate.stores.aws.items import LevelItem
from tollgate.stores.aws.row_ranges import all_rows
from tollgate.stores.aws.tables import (
    Tables,
    level_row_key,
    level_rows_prefix,
    level_state_key,
    try_update,
)
from tollgate.stores.keys.slice_writes import SliceWrites
from tollgate.stores.keys.state_writes import StateWrites
from tollgate.stores.people.level_items import (
    id_of_row,
    read_member_settings,
    read_team_settings,
    slices_of,
    workspace_of_row,
)
from tollgate.stores.rules.level_settings import LevelSettings, state_settings

READERS: Final[Mapping[AboveKey, Callable[[Item], LevelSettings]]] = {
    "member": read_member_settings,
    "team": read_team_settings,
}


class PendingLevels:
    """Completes pending changes, even if the process that began them has died."""

    def __init__(self, client: AwsCaller, tables: Tables, *, ids: IdSource, clock: Clock) -> None:
        self._client = client
        self._tables = tables
        self._states = StateWrites(client, tables.ledger, clock)
        self._slices = SliceWrites(client, tables.ledger, ids=ids, clock=clock)

    async def complete(self, workspace_id: str) -> Sequence[tuple[AboveKey, Item]]:
        """Complete the pending changes of all levels of a workspace; return the levels' items."""
        level_rows: list[tuple[AboveKey, Item]] = []
        for level in READERS:
            rows = await all_rows(
                self._client, self._tables.core, f"W#{workspace_id}", level_rows_prefix(level)
            )
            for row in rows:
                if LevelItem.PENDING in row:
                    await self.apply(level, row)
                level_rows.append((level, row))
        return level_rows

    async def apply(self, level: AboveKey, row: Item) -> None:
        """Copy the settings in a level's item to the level's state, once."""
        revision = read_number(row, LevelItem.REVISION)
        workspace_id, level_id = workspace_of_row(row), id_of_row(row)
        settings, slices = state_settings(READERS[level](row)), slices_of(row)
        if slices == 1:
            state_key = level_state_key(level, workspace_id, level_id)
            await self._states.apply(state_key, settings, revision)
        else:
            await self._slices.change(
                LimitOwner(level=level, id=level_id, workspace_id=workspace_id),
                settings,
                revision=revision,
                slices=slices,
            )
        row_key = level_row_key(level, workspace_id, level_id)
        applied = KEY_APPLIED.build(self._tables.core, row_key, {":rev": number(revision)})
        await try_update(self._client, applied)
