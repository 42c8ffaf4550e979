"""The teams of all workspaces, in DynamoDB."""

from tollgate.aws.attributes import Item, number
from tollgate.aws.failures import StoreUnavailable, TransactionCancelled, refusing_when_unavailable
from tollgate.core.records.audit import Actor
from tollgate.stores.aws.decoding import read_optional_text
from tollgate.stores.aws.expressions import TEAM_DELETE
from tollgate.stores.aws.items import KeyPointerItem, TeamItem
from tollgate.stores.aws.row_ranges import all_rows
from tollgate.stores.aws.tables import level_rows_prefix
from tollgate.stores.aws.transactions import transact
from tollgate.stores.keys.rows import is_deleting
from tollgate.stores.people.level_items import (
    is_tombstone,
    read_member_settings,
    read_team_settings,
)
from tollgate.stores.people.levels import LEVEL_ROUNDS_MAX, DynamoLevelStore, LevelKind
from tollgate.stores.people.rows import read_team
from tollgate.stores.ports.people import Belongings, Team
from tollgate.stores.rules.level_settings import LevelSettings, is_team_id


class DynamoTeamStore(DynamoLevelStore[LevelSettings, Team]):
    """Implements `stores.ports.people.TeamStore`."""

    _kind = LevelKind(
        level="team",
        is_id=is_team_id,
        id_rule="A team id has 1 to 64 characters (a-z, 0-9, dot, dash and underscore), and begins "
        "with a letter or a digit.",
        read=read_team_settings,
        show=read_team,
    )

    async def create(
        self, workspace_id: str, team_id: str, settings: LevelSettings, *, by: Actor
    ) -> Team | None:
        self._check_id(team_id)
        row: Item = {**self._key(workspace_id, team_id), TeamItem.JOINS: number(0)}
        with refusing_when_unavailable():
            if not await self._put(row, settings, by=by):
                return None
            return await self._find(workspace_id, team_id)

    async def delete(self, workspace_id: str, team_id: str, *, by: Actor) -> Belongings | None:
        """Delete a team unless it has keys or members, or gets any in the meantime."""
        with refusing_when_unavailable():
            for _ in range(LEVEL_ROUNDS_MAX):
                row = await self._row(workspace_id, team_id)
                if row is None or is_tombstone(row):
                    return None
                belongings = await self._belongings(workspace_id, team_id)
                if belongings.keys or belongings.members:
                    return belongings
                values = {
                    ":now": number(int(self._clock.now_s())),
                    ":jo": row[TeamItem.JOINS],
                }
                delete = self._update(workspace_id, team_id, TEAM_DELETE, values)
                entry = self._entry(by, "delete", row)
                try:
                    await transact(self._client, self._ids, [delete, *entry])
                except TransactionCancelled:
                    continue
                return belongings
            raise StoreUnavailable(f"team {team_id} keeps changing", maybe_applied=False)

    async def _belongings(self, workspace_id: str, team_id: str) -> Belongings:
        """Return the numbers of keys and members of a team, not counting deleted keys and removed
        members.
        """
        partition = f"W#{workspace_id}"
        pointers = await all_rows(self._client, self._tables.core, partition, "K#")
        members = await all_rows(
            self._client, self._tables.core, partition, level_rows_prefix("member")
        )
        return Belongings(
            keys=sum(
                read_optional_text(pointer, KeyPointerItem.TEAM) == team_id
                for pointer in pointers
                if not is_deleting(pointer)
            ),
            members=sum(
                read_member_settings(member).team_id == team_id
                for member in members
                if not is_tombstone(member)
            ),
        )
