"""Draws are fair, the same everywhere, and move only what a change names.

Keeps C53.
"""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollgate.routing.planning.offers import rank, score
from tollgate.routing.planning.planning_request import draw_key_hash

names = st.text(alphabet="abc/-.0", min_size=1, max_size=8)
weights = st.dictionaries(names, st.integers(1, 100), min_size=1, max_size=6)
keys = st.text(max_size=20).map(draw_key_hash)
MANY = [draw_key_hash(f"request-{number}") for number in range(20_000)]


def winner(key: str, drawn: dict[str, int], place: str = "smart") -> str:
    return rank(place, key, drawn)[0][0]


@pytest.mark.parametrize(
    "drawn",
    [{"a": 90, "b": 10}, {"a": 50, "b": 30, "c": 20}, {"a": 1, "b": 99}],
)
def test_c53_over_many_requests_the_shares_are_the_weights(drawn: dict[str, int]) -> None:
    shares = Counter(winner(key, drawn) for key in MANY)
    for name, weight in drawn.items():
        assert shares[name] / len(MANY) == pytest.approx(weight / 100, abs=0.012)


def test_c53_of_those_that_did_not_win_the_next_is_drawn_by_weight_too() -> None:
    drawn = {"a": 50, "b": 40, "c": 10}
    behind_a = Counter(
        order[1][0] for key in MANY if (order := rank("smart", key, drawn))[0][0] == "a"
    )
    assert behind_a["b"] / behind_a.total() == pytest.approx(0.8, abs=0.02)


@given(weights, keys)
def test_c53_a_draw_is_the_same_every_time_in_whatever_order_it_is_written(
    drawn: dict[str, int], key: str
) -> None:
    assert rank("smart", key, drawn) == rank("smart", key, dict(reversed(drawn.items())))


@given(weights, keys, names, st.integers(1, 100))
def test_c53_a_name_that_is_added_or_removed_moves_nobody_else(
    drawn: dict[str, int], key: str, name: str, weight: int
) -> None:
    without = {each: share for each, share in drawn.items() if each != name}
    before = [each for each, _ in rank("smart", key, without)]
    after = [each for each, _ in rank("smart", key, without | {name: weight})]
    assert [each for each in after if each != name] == before


@given(weights, keys, st.data())
def test_c53_a_name_that_weighs_more_only_wins_more(
    drawn: dict[str, int], key: str, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(drawn)))
    before = winner(key, drawn)
    after = winner(key, drawn | {name: drawn[name] + 50})
    assert after in (before, name)


def test_c53_an_added_endpoint_takes_its_share_from_each_in_proportion() -> None:
    before = {key: winner(key, {"a": 50, "b": 50}) for key in MANY}
    after = {key: winner(key, {"a": 40, "b": 40, "c": 20}) for key in MANY}
    moved = [key for key in MANY if before[key] != after[key]]
    assert {after[key] for key in moved} == {"c"}
    assert len(moved) / len(MANY) == pytest.approx(0.2, abs=0.012)
    assert Counter(before[key] for key in moved)["a"] / len(moved) == pytest.approx(0.5, abs=0.03)


def test_a_name_without_weight_comes_last() -> None:
    assert rank("smart", MANY[0], {"a": 0, "b": 1})[1] == ("a", 0.0)


def test_draws_of_two_routes_have_nothing_to_do_with_each_other() -> None:
    drawn = {"a": 50, "b": 50}
    same = sum(winner(key, drawn) == winner(key, drawn, "fast") for key in MANY)
    assert same / len(MANY) == pytest.approx(0.5, abs=0.012)


@given(keys, names)
def test_a_score_is_finite_and_positive(key: str, name: str) -> None:
    assert 0 < score("smart", key, name, 1) < float("inf")


def test_a_draw_does_not_change_with_the_python_or_the_platform() -> None:
    """Another hash would move every session once, and no record could be replayed."""
    assert draw_key_hash("request-1") == "19f1064b619d49d3"
    scores = rank("smart", MANY[1], {"a": 50, "b": 30, "c": 20})
    assert [(name, round(drawn, 6)) for name, drawn in scores] == [
        ("a", 144.349363),
        ("b", 42.574561),
        ("c", 30.116426),
    ]
