"""The settings of teams and members: their bounds, and the state of a key that they become."""

import pytest

from tollgate.core.errors import RequestError
from tollgate.stores.keys.state_items import new_key_state
from tollgate.stores.rules.level_settings import (
    LevelSettings,
    MemberSettings,
    is_member_id,
    is_team_id,
    state_settings,
)


@pytest.mark.parametrize(
    ("text", "team", "member"),
    [
        ("search", True, True),
        ("a", True, True),
        ("ana@example.com", False, True),
        ("Ana+1", False, True),
        ("", False, False),
        ("-search", False, False),
        ("search#1", False, False),
        ("x" * 65, False, True),
        ("x" * 129, False, False),
    ],
)
def test_ids_of_people_are_safe_in_keys_of_items(text: str, *, team: bool, member: bool) -> None:
    assert (is_team_id(text), is_member_id(text)) == (team, member)


@pytest.mark.parametrize(
    ("settings", "param"),
    [
        ({"requests_per_minute": 0}, "requests_per_minute"),
        ({"concurrency": 1001}, "concurrency"),
        ({"tokens_per_minute": -1}, "tokens_per_minute"),
        ({"burst": 5}, "burst"),
        ({"limits_nano_usd": {"day": 0}}, "limits.day"),
        ({"display_name": ""}, "display_name"),
    ],
)
def test_a_setting_out_of_its_bounds_is_named(settings: dict[str, object], param: str) -> None:
    with pytest.raises(RequestError) as refused:
        LevelSettings(**settings)  # type: ignore[arg-type]
    assert refused.value.param == param


def test_a_level_is_limited_by_what_a_hold_counts_alone() -> None:
    assert not LevelSettings(display_name="Search", tier="gold", models=("a/*",)).is_limited
    assert not MemberSettings(role="admin", team_id="search", email="a@b.example").is_limited
    assert LevelSettings(limits_nano_usd={"day": 1}).is_limited
    assert LevelSettings(concurrency=1).is_limited


def test_the_burst_of_a_level_is_twice_its_rate() -> None:
    assert state_settings(LevelSettings(requests_per_minute=60)).burst == 120
    assert state_settings(LevelSettings(requests_per_minute=60, burst=7)).burst == 7


def test_the_state_of_a_level_without_a_rate_takes_a_microsecond_a_request() -> None:
    state = new_key_state("unused", "acme", state_settings(LevelSettings(concurrency=4)))
    assert state["gi"] == {"N": "1"}
    assert state["cc"] == {"N": "4"}
