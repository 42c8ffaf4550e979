"""The principal of a session, or of a key that belongs to a member or team.

This module is imported with the first such secret.
"""

from collections.abc import Callable

from msgspec.structs import replace

from tollgate.aws.attributes import Item
from tollgate.core.limits import AboveKey
from tollgate.core.principal import LimitLevel, Principal
from tollgate.stores.aws.decoding import read_number, read_optional_text, read_text, reads_an_item
from tollgate.stores.aws.items import SecretItem, SessionItem
from tollgate.stores.aws.tables import level_row_key, secret_key, sign_in_key
from tollgate.stores.people.level_items import (
    is_tombstone,
    read_member_settings,
    read_round,
    read_team_settings,
    slices_of,
)
from tollgate.stores.rules.level_settings import LevelSettings, counts_holds

# A function that returns the item with a key, or None if the item was not read or not found.
_Find = Callable[[Item], Item | None]


def list_needed_rows(row: Item, find: _Find) -> list[Item]:
    """Return the keys of the items that a secret's item refers to, as far as they are known.

    A session's secret refers to its sign-in and its key, a key to its member and team, and a member
    to a team.
    """
    needed: list[Item] = []
    key_row: Item | None = row
    if SessionItem.KEY_HASH in row:
        needed.append(secret_key(read_text(row, SessionItem.KEY_HASH)))
        key_row = find(needed[0])
    # A session's item also contains the workspace and the member, so that the member's item can be
    # read together with the key's item.
    workspace_id = read_text(row, SecretItem.WORKSPACE)
    member_id = read_optional_text(row, SecretItem.MEMBER)
    if SessionItem.SIGN_IN in row:
        needed.append(_sign_in_of(row))
    team_id = None if key_row is None else read_optional_text(key_row, SecretItem.TEAM)
    if member_id is not None:
        needed.append(level_row_key("member", workspace_id, member_id))
        member = find(needed[-1])
        if team_id is None and member is not None:
            team_id = read_member_settings(member).team_id
    if team_id is not None:
        needed.append(level_row_key("team", workspace_id, team_id))
    return needed


def find_key_row(row: Item, find: _Find) -> Item | None:
    """Return the item of a secret's key; None if the key of a session has been deleted."""
    if SessionItem.KEY_HASH not in row:
        return row
    return find(secret_key(read_text(row, SessionItem.KEY_HASH)))


@reads_an_item
def session_ends_s(row: Item) -> int | None:
    """Return the Unix second from which a session is refused; None for the item of a key."""
    return read_number(row, SessionItem.EXPIRES) if SessionItem.KEY_HASH in row else None


def add_levels(principal: Principal, row: Item, find: _Find) -> Principal | None:
    """Return the principal with its member and team; None if either was removed or deleted."""
    workspace_id, member_id = principal.workspace_id, principal.member_id
    team_id, tier, role = principal.team_id, principal.tier, principal.role
    levels: list[LimitLevel] = []
    session = SessionItem.KEY_HASH in row
    if session and member_id is None:
        return None
    if member_id is not None:
        member = find(level_row_key("member", workspace_id, member_id))
        if member is None or is_tombstone(member):
            return None
        if session and _has_ended(row, member, find):
            return None
        of_member = read_member_settings(member)
        if of_member.disabled:
            return None
        team_id = team_id or of_member.team_id
        tier = tier or of_member.tier
        role = of_member.role if session else role
        levels.append(_level("member", member_id, of_member, slices_of(member)))
    if team_id is not None:
        team = find(level_row_key("team", workspace_id, team_id))
        if team is None or is_tombstone(team):
            return None
        of_team = read_team_settings(team)
        tier = tier or of_team.tier
        levels.append(_level("team", team_id, of_team, slices_of(team)))
    return replace(
        principal,
        role=role,
        tier=tier,
        team_id=team_id,
        labels={**principal.labels, **{level.level: level.id for level in levels}},
        levels=tuple(levels),
        session=session,
    )


def _sign_in_of(row: Item) -> Item:
    return sign_in_key(
        read_text(row, SessionItem.WORKSPACE),
        read_text(row, SessionItem.MEMBER),
        read_text(row, SessionItem.SIGN_IN),
    )


@reads_an_item
def _has_ended(row: Item, member: Item, find: _Find) -> bool:
    """Return whether the sign-in that a session's secret belongs to was ended, alone or with all
    others.
    """
    if read_round(row) != read_round(member):
        return True
    return SessionItem.SIGN_IN in row and find(_sign_in_of(row)) is None


def _level(level: AboveKey, level_id: str, settings: LevelSettings, slices: int) -> LimitLevel:
    return LimitLevel(
        level=level,
        id=level_id,
        limited=counts_holds(settings, slices),
        models=settings.models,
        slices=slices,
        prompt_policy=settings.prompt_policy,
        guardrails=settings.guardrails,
    )
