"""The settings in the row of a team or a member: all that authentication decodes of the row."""

from msgspec import json

from tollgate.aws.attributes import AttributeValue, Item, string
from tollgate.core.limits import AboveKey
from tollgate.stores.aws.decoding import read_optional_number, read_text, reads_an_item
from tollgate.stores.aws.items import AnyItem, LevelItem
from tollgate.stores.aws.tables import level_state_key
from tollgate.stores.rules.level_settings import LevelSettings, MemberSettings


def encode_level_settings(settings: LevelSettings) -> AttributeValue:
    """Return the settings of a level as one attribute value."""
    return string(json.encode(settings).decode())


@reads_an_item
def read_team_settings(row: Item) -> LevelSettings:
    """Return the settings that the row of a team has."""
    return json.decode(read_text(row, LevelItem.SETTINGS), type=LevelSettings)


@reads_an_item
def read_member_settings(row: Item) -> MemberSettings:
    """Return the settings that the row of a member has."""
    return json.decode(read_text(row, LevelItem.SETTINGS), type=MemberSettings)


def is_tombstone(row: Item) -> bool:
    """Return whether a row is the tombstone of a deleted team or removed member."""
    return LevelItem.GONE in row


@reads_an_item
def slices_of(row: Item) -> int:
    """Return the number of items over which the state of a team or member is spread."""
    return read_optional_number(row, LevelItem.SLICES) or 1


def id_of_row(row: Item) -> str:
    """Return the id of a level from its sort key, which is intact even in a corrupt row."""
    return read_text(row, AnyItem.SORT).partition("#")[2]


def workspace_of_row(row: Item) -> str:
    """Return the workspace of a team or member."""
    return read_text(row, AnyItem.PARTITION).partition("#")[2]


def state_keys(level: AboveKey, row: Item) -> list[Item]:
    """Return the keys of the items that make up the state of a team or member, in order."""
    workspace_id, level_id = workspace_of_row(row), id_of_row(row)
    return [
        level_state_key(level, workspace_id, level_id, place) for place in range(slices_of(row))
    ]
