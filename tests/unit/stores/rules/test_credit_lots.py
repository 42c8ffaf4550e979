"""Lots of credit that expires: which is spent first, what is due, and what is never taken.

Keeps C64.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollgate.core.errors import RequestError
from tollgate.core.ids import encode_id
from tollgate.stores.rules.credit_lots import (
    LOTS_MAX,
    Lot,
    Lots,
    Sums,
    add_lot,
    allot,
    find_takeable,
    spread,
    take_from_lot,
)


def lot(name: str, expires_s: int, left: int) -> Lot:
    return Lot(id=name, expires_s=expires_s, granted_nano_usd=left, left_nano_usd=left)


def hold_at(second: int) -> str:
    return encode_id(second.to_bytes(4, "big") + bytes(7))


def left_of(lots: Lots) -> dict[str, int]:
    return {it.id: it.left_nano_usd for it in lots.lots}


def sums(available: int, holds: dict[str, int] | None = None) -> Sums:
    return Sums(
        granted_nano_usd=0, spent_nano_usd=0, available_nano_usd={0: available}, holds=holds or {}
    )


def test_c64_the_grant_that_expires_first_is_spent_first_whenever_it_came() -> None:
    lots = add_lot(add_lot(Lots(), lot("later", 200, 10)), lot("sooner", 100, 10))
    after = allot(lots, granted_nano_usd=1_000, spent_nano_usd=12)
    assert left_of(after) == {"sooner": 0, "later": 8}
    assert left_of(allot(after, granted_nano_usd=1_000, spent_nano_usd=12)) == left_of(after)


def test_c64_spending_from_before_a_grant_is_not_allotted_to_it() -> None:
    before = allot(Lots(), granted_nano_usd=100, spent_nano_usd=40)
    lots = add_lot(before, lot("plan", 100, 10))
    assert left_of(allot(lots, granted_nano_usd=110, spent_nano_usd=43)) == {"plan": 7}


def test_c64_lots_pay_what_is_missing_where_credit_was_taken_back() -> None:
    lots = Lots(lots=(lot("sooner", 100, 10), lot("later", 200, 10)))
    assert left_of(allot(lots, granted_nano_usd=15, spent_nano_usd=0)) == {"sooner": 5, "later": 10}


def test_c64_nothing_is_taken_before_the_second_in_which_a_grant_expires() -> None:
    lots = Lots(lots=(lot("plan", 100, 10),))
    assert find_takeable(lots, sums(10), 99.9) is None
    assert find_takeable(lots, sums(10), 100) == (lots.lots[0], 10)


def test_c64_a_hold_from_before_the_expiry_keeps_its_part_and_a_later_one_does_not() -> None:
    lots = Lots(lots=(lot("plan", 100, 10),))
    old, new = hold_at(99), hold_at(100)
    assert find_takeable(lots, sums(50, {old: 4, new: 3}), 101) == (lots.lots[0], 6)
    rest = take_from_lot(lots, "plan", 6)
    assert left_of(rest) == {"plan": 4}
    assert find_takeable(rest, sums(50, {old: 4}), 102) is None
    assert find_takeable(rest, sums(50), 103) == (rest.lots[0], 4)
    assert take_from_lot(rest, "plan", 4).lots == ()


def test_c64_one_hold_keeps_one_part_of_several_expired_grants() -> None:
    lots = Lots(lots=(lot("first", 100, 10), lot("second", 101, 10)))
    assert find_takeable(lots, sums(50, {hold_at(50): 12}), 102) == (lots.lots[1], 8)


def test_c64_an_expiry_never_takes_more_than_is_available() -> None:
    lots = Lots(lots=(lot("plan", 100, 10),))
    assert find_takeable(lots, sums(3), 100) == (lots.lots[0], 3)
    assert find_takeable(lots, sums(-3), 100) is None


def test_c64_grants_that_expire_are_limited_in_number() -> None:
    lots = Lots()
    for number in range(LOTS_MAX):
        lots = add_lot(lots, lot(f"{number}", 100, 1))
    with pytest.raises(RequestError) as refused:
        add_lot(lots, lot("one more", 100, 1))
    assert refused.value.param == "expires_at"
    used_up = allot(lots, granted_nano_usd=LOTS_MAX, spent_nano_usd=1)
    assert len(add_lot(used_up, lot("one more", 100, 1)).lots) == LOTS_MAX


@given(st.dictionaries(st.integers(0, 15), st.integers(-5, 50), min_size=1), st.data())
def test_c64_what_shards_give_together_is_the_amount(
    available: dict[int, int], data: st.DataObject
) -> None:
    most = sum(max(0, left) for left in available.values())
    amount = data.draw(st.integers(0, most))
    parts = spread(amount, available)
    assert sum(parts.values()) == amount
    assert all(0 < part <= available[shard] for shard, part in parts.items())


@given(st.lists(st.tuples(st.integers(0, 20), st.sampled_from(["spend", "lot"])), max_size=30))
def test_c64_what_is_left_does_not_depend_on_how_often_it_is_worked_out(
    steps: list[tuple[int, str]],
) -> None:
    """The item is written at changes of lots alone; working it out at each spending is the same."""
    spent, granted = 0, 1_000
    lazy = eager = Lots()
    for number, (amount, step) in enumerate(steps):
        if step == "spend":
            spent += amount
            eager = allot(eager, granted_nano_usd=granted, spent_nano_usd=spent)
        elif amount:
            lazy = allot(lazy, granted_nano_usd=granted, spent_nano_usd=spent)
            granted += amount
            # Every other one expires before those that are there.
            new = lot(f"{number:03d}", 1_000 + (number if number % 2 else -number), amount)
            lazy, eager = add_lot(lazy, new), add_lot(eager, new)
    lazy = allot(lazy, granted_nano_usd=granted, spent_nano_usd=spent)
    present = {name: left for name, left in left_of(lazy).items() if left}
    assert present == {name: left for name, left in left_of(eager).items() if left}
