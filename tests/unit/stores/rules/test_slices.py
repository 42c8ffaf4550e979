"""The parts of limits that slices have: together they are the limit, at any moment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollgate.stores.rules.account import RateState
from tollgate.stores.rules.slices import (
    SLICES_MAX,
    even_parts,
    grown_count,
    is_closed,
    rate_part,
    whole_rate,
)

_NOW_US = 1_795_264_201_000_000


@given(
    st.integers(1, 10**12),
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1, max_size=16),
)
def test_parts_are_the_limit_and_leave_the_same_room(
    total: int, slices: list[tuple[int, int]]
) -> None:
    held = [of_slice for of_slice, _ in slices]
    committed = [of_slice + spent for of_slice, spent in slices]

    parts = even_parts(total, committed, held)

    assert sum(parts) == total
    assert min(parts) >= 0
    rooms = [part - taken for part, taken in zip(parts, committed, strict=True)]
    if total >= sum(committed):
        assert max(rooms) - min(rooms) <= 1
        assert min(rooms) >= 0
    else:
        # Nobody has room before the whole has.
        assert max(rooms) <= 0


def test_the_example_in_the_module_is_right() -> None:
    assert even_parts(100, [60, 0, 0, 0], [10, 0, 0, 0]) == [70, 10, 10, 10]
    assert even_parts(100, [63, 9, 4, 1], [0, 0, 0, 0]) == [69, 15, 10, 6]
    assert even_parts(30, [20, 15, 5], [10, 0, 5]) == [13, 15, 2]


@given(st.integers(1, 100_000), st.integers(1, 10_000), st.sampled_from([1, 4, 16]))
def test_slices_let_through_together_what_the_rate_does(
    requests_per_minute: int, burst: int, count: int
) -> None:
    whole = RateState.fresh(requests_per_minute, burst)
    slices = [rate_part(whole, count, place) for place in range(count)]
    sharing = [it for it in slices if not is_closed(it)]

    assert sum(it.burst for it in sharing) == burst
    # A slice has one request more each time that all of them together would have had one each.
    assert {it.interval_us for it in sharing} == {whole.interval_us * len(sharing)}
    assert whole_rate(slices) == whole
    # Whoever has no part never lets a request through.
    assert all(it.ready_us > _NOW_US < it.full_us for it in slices if is_closed(it))


def test_a_level_without_a_rate_has_slices_without_one() -> None:
    unlimited = RateState(full_us=0, ready_us=0, interval_us=1, slack_us=10)
    assert rate_part(unlimited, 16, 15) == unlimited
    assert whole_rate([unlimited] * 16) == unlimited


@pytest.mark.parametrize(
    ("items", "holds", "then"), [(1, 0, 4), (1, 32, 4), (1, 33, 16), (4, 0, 16), (16, 999, 16)]
)
def test_items_that_are_too_many_holds_for_become_four_times_as_many_or_more(
    items: int, holds: int, then: int
) -> None:
    assert grown_count(items, holds) == then <= SLICES_MAX
