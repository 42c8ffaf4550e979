"""The items of teams and members in the core table: their settings, and the actions to join
them.
"""

from msgspec import json

from tollgate.aws.attributes import AttributeValue, Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.limits import AboveKey
from tollgate.stores.aws.decoding import read_optional_number, read_text, reads_an_item
from tollgate.stores.aws.expressions import LEVEL_THERE, TEAM_JOIN
from tollgate.stores.aws.items import AnyItem, LevelItem, MemberItem
from tollgate.stores.aws.tables import get_item, level_row_key, level_state_key
from tollgate.stores.rules.level_settings import (
    LevelSettings,
    MemberSettings,
    is_member_id,
    is_team_id,
)


def encode_level_settings(settings: LevelSettings) -> AttributeValue:
    """Return the settings of a level as one attribute value."""
    return string(json.encode(settings).decode())


@reads_an_item
def read_team_settings(row: Item) -> LevelSettings:
    """Return the settings in the item of a team."""
    return json.decode(read_text(row, LevelItem.SETTINGS), type=LevelSettings)


@reads_an_item
def read_member_settings(row: Item) -> MemberSettings:
    """Return the settings in the item of a member."""
    return json.decode(read_text(row, LevelItem.SETTINGS), type=MemberSettings)


def is_tombstone(row: Item) -> bool:
    """Return whether an item is the tombstone of a deleted team or removed member."""
    return LevelItem.GONE in row


@reads_an_item
def slices_of(row: Item) -> int:
    """Return the number of slices of a team's or member's state."""
    return read_optional_number(row, LevelItem.SLICES) or 1


@reads_an_item
def read_round(row: Item) -> int:
    """Return the session round of a member's item, or of the item of a session."""
    return read_optional_number(row, MemberItem.ROUND) or 0


def id_of_row(row: Item) -> str:
    """Return a level's id from the sort key, which can be read even in a corrupt item."""
    return read_text(row, AnyItem.SORT).partition("#")[2]


def workspace_of_row(row: Item) -> str:
    """Return the workspace of a team or member."""
    return read_text(row, AnyItem.PARTITION).partition("#")[2]


def state_keys(level: AboveKey, row: Item) -> list[Item]:
    """Return the keys of the items that make up the state of a team or member, in order."""
    workspace_id, level_id = workspace_of_row(row), id_of_row(row)
    return [
        level_state_key(level, workspace_id, level_id, index) for index in range(slices_of(row))
    ]


async def join_levels(
    client: AwsCaller,
    table: str,
    workspace_id: str,
    *,
    team_id: str | None = None,
    member_id: str | None = None,
) -> list[object]:
    """Return the transaction actions by which a key or a member joins a team and a member.

    An action fails if its team or member is deleted in the meantime. Raise RequestError if there is
    no such team or member.
    """

    async def find(level: AboveKey, level_id: str, *, is_valid: bool) -> Item:
        key = level_row_key(level, workspace_id, level_id)
        row = await get_item(client, table, key) if is_valid else None
        if row is None or is_tombstone(row):
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"There is no {level} {level_id} in this workspace.",
                param=f"{level}_id",
            )
        return key

    actions: list[object] = []
    if team_id is not None:
        key = await find("team", team_id, is_valid=is_team_id(team_id))
        # The join counter makes a concurrent deletion of the team fail.
        actions.append({"Update": TEAM_JOIN.build(table, key, {":one": number(1)})})
    if member_id is not None:
        key = await find("member", member_id, is_valid=is_member_id(member_id))
        check = {"TableName": table, "Key": key, "ConditionExpression": LEVEL_THERE}
        actions.append({"ConditionCheck": check})
    return actions
