"""The transaction actions by which a key or a member joins an existing team or member."""

from tollgate.aws.attributes import Item, number
from tollgate.aws.aws_json import AwsCaller
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.limits import AboveKey
from tollgate.stores.aws.expressions import LEVEL_THERE, TEAM_JOIN
from tollgate.stores.aws.items import LevelItem
from tollgate.stores.aws.tables import get_item, level_row_key
from tollgate.stores.rules.level_settings import is_member_id, is_team_id


class Belonging:
    """Checks that a team and a member exist, for transactions that refer to them."""

    def __init__(self, client: AwsCaller, table: str) -> None:
        self._client = client
        self._table = table

    async def join(
        self, workspace_id: str, *, team_id: str | None = None, member_id: str | None = None
    ) -> list[object]:
        """Return the actions that join a team and a member; each fails if that level is deleted
        meanwhile.

        Raises RequestError if there is no such team or member.
        """
        actions: list[object] = []
        if team_id is not None:
            key = await self._find("team", workspace_id, team_id, valid=is_team_id(team_id))
            # The counter tells a concurrent deletion of the team that something has joined it.
            update = {"TableName": self._table, "Key": key}
            update["UpdateExpression"] = TEAM_JOIN.update
            update["ConditionExpression"] = TEAM_JOIN.condition
            update["ExpressionAttributeValues"] = {":one": number(1)}
            actions.append({"Update": update})
        if member_id is not None:
            key = await self._find("member", workspace_id, member_id, valid=is_member_id(member_id))
            check = {"TableName": self._table, "Key": key, "ConditionExpression": LEVEL_THERE}
            actions.append({"ConditionCheck": check})
        return actions

    async def _find(
        self, level: AboveKey, workspace_id: str, level_id: str, *, valid: bool
    ) -> Item:
        key = level_row_key(level, workspace_id, level_id)
        row = await get_item(self._client, self._table, key) if valid else None
        if row is None or LevelItem.GONE in row:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"There is no {level} {level_id} in this workspace.",
                param=f"{level}_id",
            )
        return key
