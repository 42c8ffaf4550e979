"""At which rates DynamoDB's limits are met, and what becomes of money and callers there.

The real ledger over a store in memory that has the limits, on simulated time. `python -m
tests.capacity.report` prints the rates. Keeps C62, C64.
"""

from collections import Counter
from dataclasses import replace

import pytest

from tests.capacity.load import Outcome, Shape, run_load
from tests.capacity.report import SHAPES, ramp, steady


def assert_nothing_is_lost(outcome: Outcome) -> None:
    """The books add up, and what was left held is gone after a minute, without a sweep."""
    assert (outcome.left_a_minute, outcome.left_swept) == (0, 0)
    assert outcome.differences == []


nightly = pytest.mark.nightly


@nightly
@pytest.mark.parametrize(("answer_s", "rate"), [(2.0, 90), (15.0, 34)])
def test_c64_one_wallet_one_team_and_one_key_serve_the_rate_that_is_stated(
    answer_s: float, rate: float
) -> None:
    outcome = steady(Shape(keys=1, team=True, answer_s=answer_s), rate)

    assert (outcome.throttled, outcome.refused, outcome.left_held) == (Counter(), Counter(), 0)
    assert outcome.served == outcome.asked
    assert_nothing_is_lost(outcome)


@pytest.mark.parametrize(
    ("shape", "prefix", "duration_s"),
    [
        pytest.param("a wallet of 1 shard", "W", 13, marks=nightly),
        pytest.param("a team with limits", "T", 13, marks=nightly),
        ("a key", "K", 4),
    ],
)
def test_c64_a_throttled_item_is_a_503_to_callers_and_loses_nothing(
    shape: str, prefix: str, duration_s: float
) -> None:
    outcome = run_load(SHAPES[shape], lambda _: 150, duration_s)

    assert set(outcome.throttled) == {prefix}
    assert set(outcome.refused) == {"service_unavailable"}
    # Nobody loses an answer that has begun.
    assert outcome.served == outcome.asked - outcome.refused.total()
    assert_nothing_is_lost(outcome)


def test_c62_what_an_overload_leaves_held_is_settled_within_a_minute() -> None:
    """The sweeper would settle these holds after 1,005 s."""
    outcome = run_load(replace(SHAPES["a key"], write_units=10), lambda _: 80, 2)

    assert outcome.refused.total() > 100
    assert outcome.left_held > 30
    assert_nothing_is_lost(outcome)


@nightly
def test_c64_a_wallet_that_was_throttled_serves_again_as_soon_as_the_burst_is_over() -> None:
    """Settlements that were throttled and given up would keep its item long for 1,005 s."""
    outcome = run_load(Shape(), lambda at_s: 300 if at_s < 6 else 50, 20)

    assert outcome.refused.total() > 200
    assert outcome.last_refused_s < 16
    assert_nothing_is_lost(outcome)


@nightly
@pytest.mark.parametrize(("at_a_round", "last"), [(1.7, 28.0), (3.5, 60.0)])
def test_c64_shards_and_slices_grow_before_they_throttle_when_their_load_doubles_in_75_s(
    at_a_round: float, last: float
) -> None:
    """A round finds wallet and team nearly crowded, or crowded for the first time."""
    shape = Shape(answer_s=15.0, maintained_every_s=300, team=True)
    doublings_of_a_round = 300 / 75

    outcome = ramp(shape, 75, first=at_a_round / 2**doublings_of_a_round, last=last)

    assert (outcome.throttled, outcome.refused) == (Counter(), Counter())
    assert_nothing_is_lost(outcome)


@nightly
@pytest.mark.parametrize(("write_units", "rate"), [(90, 34), (300, 100)])
def test_c64_what_throttles_grows_and_its_credit_and_limits_come_out_of_the_throttled_item(
    write_units: int, rate: int
) -> None:
    """A load that comes at once is too much until the next round, and no longer."""
    shape = Shape(write_units=write_units, maintained_every_s=10, team=True)

    outcome = run_load(shape, lambda _: rate, 30)

    [(grown_s, shards)] = outcome.grown
    assert shards == 16
    assert [slices for _, slices in outcome.sliced] == [16]
    assert set(outcome.throttled) == {"W", "T"}
    assert outcome.refused.total() > 2 * rate
    # One round, which began after 10 s, is enough: its writes come through while all are throttled.
    assert grown_s < 28
    # Authentication is 5 s old at most, and answers that hold on the old shard take 3 s.
    assert outcome.last_refused_s < grown_s + 8
    assert_nothing_is_lost(outcome)
