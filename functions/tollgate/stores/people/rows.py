"""Teams and members, decoded from items of the core table, and the spending in their states."""

from collections import Counter
from collections.abc import Mapping, Sequence

from tollgate.aws.attributes import Item, number
from tollgate.core.ids import created_s
from tollgate.core.limits import Period
from tollgate.stores.aws.decoding import (
    read_number,
    read_numbers_by_name,
    read_optional_number,
    read_optional_text,
    reads_an_item,
)
from tollgate.stores.aws.items import KeyStateItem, LevelItem, MemberItem
from tollgate.stores.keys.rows import used_nano_usd
from tollgate.stores.keys.state_items import new_state, read_key_state
from tollgate.stores.people.level_items import (
    id_of_row,
    read_member_settings,
    read_team_settings,
    workspace_of_row,
)
from tollgate.stores.ports.people import LevelSpending, Member, Team
from tollgate.stores.rules.account import UNLIMITED
from tollgate.stores.rules.key_settings import KeySettings
from tollgate.stores.rules.level_settings import LevelSettings, MemberSettings
from tollgate.stores.rules.periods import PERIODS, bucket_names, period_ends_s
from tollgate.stores.rules.slices import whole_state


@reads_an_item
def read_team(row: Item, spending: Mapping[str, LevelSpending]) -> Team:
    """Return the team in an item, with its spending, which is looked up by the team's id."""
    settings = read_team_settings(row)
    return Team(
        **{name: getattr(settings, name) for name in LevelSettings.__struct_fields__},
        id=id_of_row(row),
        workspace_id=workspace_of_row(row),
        created_s=read_number(row, LevelItem.CREATED),
        deleted_s=read_optional_number(row, LevelItem.GONE),
        spending=_select(spending, row, settings),
    )


@reads_an_item
def read_member(row: Item, spending: Mapping[str, LevelSpending]) -> Member:
    """Return the member in an item, with its spending, which is looked up by the member's id."""
    settings = read_member_settings(row)
    return Member(
        **{name: getattr(settings, name) for name in MemberSettings.__struct_fields__},
        id=id_of_row(row),
        workspace_id=workspace_of_row(row),
        created_s=read_number(row, LevelItem.CREATED),
        removed_s=read_optional_number(row, LevelItem.GONE),
        subject=read_optional_text(row, MemberItem.SUBJECT),
        spending=_select(spending, row, settings),
    )


def _select(
    spending: Mapping[str, LevelSpending], row: Item, settings: LevelSettings
) -> LevelSpending:
    """Return a level's spending, or zero if the level has no limits, because its state may be
    outdated then.
    """
    counted = spending.get(id_of_row(row)) if settings.is_limited else None
    return counted or LevelSpending()


@reads_an_item
def read_spending(state: Item, now_s: float, other_slices: Sequence[Item] = ()) -> LevelSpending:
    """Return the spending that all slices of a level's state have counted."""
    slices, second = (state, *other_slices), int(now_s)
    counted = whole_state([read_key_state(item) for item in slices], second)
    remaining = counted.remaining_nano_usd(second)
    holds: Counter[str] = Counter()
    for item in slices:
        holds.update(read_numbers_by_name(item, KeyStateItem.HOLDS))
    limited = [period for period in PERIODS if counted.limits_nano_usd[period] != UNLIMITED]
    return LevelSpending(
        remaining_nano_usd={period: remaining[period] for period in limited},
        resets_s={period: period_ends_s(period, second) for period in limited},
        used_nano_usd=used_nano_usd(counted.limits_nano_usd, remaining, holds, second),
        held_nano_usd=sum(holds.values()),
        hold_ids=tuple(sorted(holds)),
    )


def seeded_state(
    state_key: Item,
    settings: KeySettings,
    *,
    used_nano_usd: Mapping[Period, int],
    holds: Mapping[str, int],
    second: int,
) -> Item:
    """Return the state of a level that has already spent `used_nano_usd` in the current periods.

    `holds` are open holds from an earlier time when the level had limits.
    """
    buckets: dict[str, int] = {}
    for index, (period, name) in enumerate(zip(PERIODS, bucket_names(second), strict=True)):
        limit = settings.limits_nano_usd.get(period, UNLIMITED)
        buckets[name] = limit - used_nano_usd.get(period, 0)
        for hold_id, amount in holds.items():
            if bucket_names(created_s(hold_id))[index] == name:
                buckets[name] -= amount
    return {
        **new_state(state_key, settings),
        **{name: number(amount_left) for name, amount_left in buckets.items()},
        KeyStateItem.SPENT: number(used_nano_usd.get("total", 0)),
        KeyStateItem.HOLDS: {"M": {id_: number(amount) for id_, amount in holds.items()}},
    }
