"""The teams of all workspaces, in DynamoDB."""

from collections.abc import Callable

from tollgate.core.audit import Actor
from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import IdSource
from tollgate.core.pages import Page
from tollgate.stores.aws.attributes import Item, number
from tollgate.stores.aws.aws_json import AwsCaller
from tollgate.stores.aws.decoding import read_optional_text
from tollgate.stores.aws.expressions import TEAM_DELETE
from tollgate.stores.aws.failures import (
    StoreUnavailable,
    TransactionCancelled,
    refusing_when_unavailable,
)
from tollgate.stores.aws.items import KeyPointerItem, TeamItem
from tollgate.stores.aws.tables import Tables, all_rows, level_row_key, level_rows_prefix
from tollgate.stores.aws.transactions import transact
from tollgate.stores.keys.rows import is_deleting
from tollgate.stores.membership.level_items import (
    is_tombstone,
    read_member_settings,
    read_team_settings,
)
from tollgate.stores.membership.levels import LEVEL_ROUNDS_MAX, LevelChange, Levels
from tollgate.stores.membership.rows import read_team
from tollgate.stores.people import PEOPLE_PAGE_MAX, Belongings, Team
from tollgate.stores.records.generations import DynamoGenerationStore
from tollgate.stores.rules.level_settings import LevelSettings, is_team_id


class DynamoTeamStore:
    """Implements `stores.people.TeamStore`."""

    def __init__(
        self,
        client: AwsCaller,
        tables: Tables,
        generations: DynamoGenerationStore,
        *,
        ids: IdSource,
        clock: Clock,
    ) -> None:
        self._client = client
        self._tables = tables
        self._ids = ids
        self._clock = clock
        self._levels = Levels(
            client,
            tables,
            generations,
            level="team",
            is_id=is_team_id,
            read=read_team_settings,
            show=read_team,
            ids=ids,
            clock=clock,
        )

    async def create(
        self, workspace_id: str, team_id: str, settings: LevelSettings, *, by: Actor
    ) -> Team | None:
        """Create a team; None if its id is taken, or was by a deleted team."""
        if not is_team_id(team_id):
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                "The id of a team has 1 to 64 of a-z, 0-9, dot, dash and underscore, and begins "
                "with a letter or a digit.",
                param="id",
            )
        with refusing_when_unavailable():
            row: Item = {
                **level_row_key("team", workspace_id, team_id),
                TeamItem.JOINS: number(0),
            }
            if not await self._levels.create(row, settings, by=by):
                return None
            return await self._levels.find(workspace_id, team_id)

    async def get(self, workspace_id: str, team_id: str) -> Team | None:
        """Return a team, deleted or not; None if there never was one with this id."""
        with refusing_when_unavailable():
            return await self._levels.find(workspace_id, team_id)

    async def list(
        self, workspace_id: str, *, after: str | None = None, limit: int = PEOPLE_PAGE_MAX
    ) -> Page[Team]:
        """Return a page of teams in the order of their ids, from the one after `after`."""
        with refusing_when_unavailable():
            return await self._levels.page(workspace_id, after=after, limit=limit)

    async def change(
        self,
        workspace_id: str,
        team_id: str,
        edit: Callable[[LevelSettings], LevelSettings],
        *,
        by: Actor,
    ) -> Team | None:
        """Replace a team's settings by what `edit` returns; the same ones again change nothing."""
        with refusing_when_unavailable():
            change = LevelChange(edit=edit, by=by)
            return await self._levels.change(workspace_id, team_id, change)

    async def delete(self, workspace_id: str, team_id: str, *, by: Actor) -> Belongings | None:
        """Delete a team that nothing belongs to, and that nothing joins meanwhile."""
        with refusing_when_unavailable():
            for _ in range(LEVEL_ROUNDS_MAX):
                row = await self._levels.row(workspace_id, team_id)
                if row is None or is_tombstone(row):
                    return None
                belongings = await self._belongings(workspace_id, team_id)
                if belongings.keys or belongings.members:
                    return belongings
                delete = {
                    "TableName": self._tables.core,
                    "Key": level_row_key("team", workspace_id, team_id),
                    "UpdateExpression": TEAM_DELETE.update,
                    "ConditionExpression": TEAM_DELETE.condition,
                    "ExpressionAttributeValues": {
                        ":now": number(int(self._clock.now_s())),
                        ":jo": row[TeamItem.JOINS],
                    },
                }
                entry = self._levels.entry(by, "delete", row)
                try:
                    await transact(self._client, self._ids, [{"Update": delete}, *entry])
                except TransactionCancelled:
                    continue
                return belongings
            raise StoreUnavailable(f"team {team_id} keeps changing", maybe_applied=False)

    async def _belongings(self, workspace_id: str, team_id: str) -> Belongings:
        """Return how many keys and members name the team; deleted and removed ones do not count."""
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
