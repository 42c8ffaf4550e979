"""GET /key: the limits above a key, and the one of which the least is left.

Keeps C92.
"""

from collections.abc import Mapping

import pytest

from tollgate.core.limits import Period
from tollgate.stores.ports.administration import KeySummary
from tollgate.stores.ports.credit import Balance
from tollgate.stores.ports.people import LevelSpending, Member, Team
from tollgate.web.people.level_shapes import OwnKeyReply

USD = 1_000_000_000


def key_with(left: Mapping[Period, int]) -> KeySummary:
    return KeySummary(
        id="k",
        workspace_id="acme",
        role="inference",
        label="key",
        prefix="sk-tg-",
        last_four="abcd",
        created_s=0,
        secret_created_s=0,
        limits_nano_usd=dict.fromkeys(left, 10 * USD),
        remaining_nano_usd=left,
        resets_s=dict.fromkeys(left, 1_795_305_600),
    )


def spent(left: Mapping[Period, int]) -> LevelSpending:
    return LevelSpending(remaining_nano_usd=left, resets_s=dict.fromkeys(left))


@pytest.mark.parametrize(
    ("key", "member", "team", "credit", "tightest"),
    [
        ({}, {}, {}, 3, ("workspace", "acme", "credit", 3.0)),
        ({"day": 2}, {}, {}, 3, ("key", "k", "day", 2.0)),
        ({"day": 2, "month": 1}, {"total": 4}, {}, 3, ("key", "k", "month", 1.0)),
        ({"day": 2}, {"total": 1}, {"week": 1}, 3, ("member", "ana", "total", 1.0)),
        ({"day": 2}, {"total": 1}, {"week": -1}, 3, ("team", "search", "week", -1.0)),
        ({"day": 2}, {"total": 1}, {"week": 1}, 0, ("workspace", "acme", "credit", 0.0)),
    ],
)
def test_c92_the_tightest_limit_is_the_one_with_the_least_left(
    key: Mapping[Period, int],
    member: Mapping[Period, int],
    team: Mapping[Period, int],
    credit: int,
    tightest: tuple[str, str, str, float],
) -> None:
    def left(of: Mapping[Period, int]) -> dict[Period, int]:
        return {period: dollars * USD for period, dollars in of.items()}

    levels = [
        Member(
            id="ana",
            workspace_id="acme",
            created_s=0,
            limits_nano_usd=dict.fromkeys(member, 10 * USD),
            spending=spent(left(member)),
        ),
        Team(
            id="search",
            workspace_id="acme",
            created_s=0,
            limits_nano_usd=dict.fromkeys(team, 10 * USD),
            spending=spent(left(team)),
        ),
    ]
    money = Balance(
        granted_nano_usd=5 * USD,
        available_nano_usd=credit * USD,
        held_nano_usd=0,
        spent_nano_usd=(5 - credit) * USD,
    )
    shown = OwnKeyReply.of(key_with(left(key)), levels, money).model_dump(mode="json")["data"]
    found = shown["tightest"]
    assert (found["level"], found["id"], found["kind"], found["remaining"]) == tightest
    assert [(it["level"], it["id"]) for it in shown["levels"]] == [
        ("member", "ana"),
        ("team", "search"),
    ]
    assert shown["levels"][1]["limits_remaining"] == {
        period: float(dollars) for period, dollars in team.items()
    }


def test_c92_a_limit_that_is_not_counted_yet_is_no_error() -> None:
    team = Team(id="new", workspace_id="acme", created_s=0, limits_nano_usd={"day": USD})
    money = Balance(granted_nano_usd=USD, available_nano_usd=USD, held_nano_usd=0, spent_nano_usd=0)
    shown = OwnKeyReply.of(key_with({}), [team], money).data
    assert shown.tightest.level == "workspace"
    assert (shown.levels[0].limits, shown.levels[0].limits_remaining) == ({"day": 1}, {})
