"""Expressions for holds on the states of keys and levels; `expressions.py` has all others."""

from collections.abc import Collection
from typing import Final, Literal, assert_never

from tollgate.stores.aws.expressions import ConditionalUpdate
from tollgate.stores.rules.account import RateForm, TierForm

_PERIODS: Final = "dwmt"
_KEY_TAKE: Final = ", ".join(
    (
        *(f"#{p} = if_not_exists(#{p}, l{p}) - :a" for p in _PERIODS),
        "#n = if_not_exists(#n, tl) - :t",
    )
)
_KEY_GIVE_BACK: Final = ", ".join(
    (
        *(f"#{p} = if_not_exists(#{p}, l{p}) + :d" for p in _PERIODS),
        "#n = if_not_exists(#n, tl) + :t",
    )
)
_KEY_LEFT: Final = " AND ".join(
    (
        *(f"(#{p} >= :a OR (attribute_not_exists(#{p}) AND l{p} >= :a))" for p in _PERIODS),
        "(#n >= :t OR (attribute_not_exists(#n) AND tl >= :t))",
    )
)
_KEY_OPEN: Final = "#on = :one AND ex > :second AND attribute_not_exists(h.#h)"


def key_hold(
    form: RateForm,
    stale_buckets: int = 0,
    *,
    rate: TierForm | None = None,
    budget: tuple[int, TierForm] | None = None,
    counters: int = 0,
    waiting: int = 0,
) -> ConditionalUpdate:
    """Build the write that sets a key's hold and counts the request and its tokens.

    The holds under the aliases `#p0`, `#p1`… take none of the `:places`.

    The write also removes `stale_buckets` old buckets, under the aliases `#s0`, `#s1`….

    If the key's tier limits the rate or the spending in a period, the writer guesses whether the
    tier's limit or the key's own limit is narrower, and the condition checks the guess. `:ti` and
    `:ts` are the tier's interval and slack, `:tb` is the tier's budget, `:tl` is the key's own
    limit, and `:tn` is the amount of the key's own limit that must remain.

    The write adds `:c0` to the counter `#c0` of a quota if the counter is at most `:r0`. `#q` is
    the note of the amounts added.

    GCRA sets `tat = max(tat, now) + interval`. DynamoDB has no max(), so there is one form for a
    full bucket (`idle`) and one for a bucket that is filling (`busy`); exactly one of the two
    conditions is true. A level without a rate has an interval of one microsecond, and the
    `unlimited` form does not change the rate.
    """
    gi, gs = (":ti", ":ts") if rate == "tier" else ("gi", "gs")
    match form:
        case "idle":
            step, may = f", tat = :now + {gi}, ra = :now - {gs}", "tat <= :now"
        case "busy":
            step, may = f", tat = tat + {gi}, ra = ra + {gi}", "tat >= :now AND ra <= :now"
        case "unlimited":
            step, may = "", "gi = :one"
        case _:
            assert_never(form)
    if rate is not None:
        may += " AND gi < :ti" if rate == "tier" else " AND gi >= :ti"
    if budget is not None:
        may += _within_budget(*budget)
    may += _within_quotas(counters)
    there = "".join(f" AND attribute_exists(h.#p{index})" for index in range(waiting))
    room = f"size(h) < :places AND cc = :cc{there}" if waiting else "size(h) < cc"
    remove = ", ".join(f"#s{index}" for index in range(stale_buckets))
    return ConditionalUpdate(
        f"SET h.#h = :a, {_KEY_TAKE}, #used = :second{step}{_count('+', range(counters))}"
        + (f" REMOVE {remove}" if remove else ""),
        f"{_KEY_OPEN} AND {room} AND {may} AND {_KEY_LEFT}",
    )


def _within_budget(period_index: int, whose: TierForm) -> str:
    p = _PERIODS[period_index]
    if whose == "own":
        return f" AND l{p} <= :tb"
    return f" AND l{p} = :tl AND (#{p} >= :tn OR attribute_not_exists(#{p}))"


def _within_quotas(counters: int) -> str:
    return "".join(
        f" AND (attribute_not_exists(#c{index}) OR #c{index} <= :r{index})"
        for index in range(counters)
    )


def _count(sign: Literal["+", "-"], counters: Collection[int]) -> str:
    """Build the part of an update that changes the counters of quotas."""
    if not counters:
        return ""
    changed = "".join(
        f", #c{index} = if_not_exists(#c{index}, :zero) {sign} :c{index}" for index in counters
    )
    return f"{changed}, #q = :q" if sign == "+" else changed


def key_top_up(budget: tuple[int, TierForm] | None = None, counters: int = 0) -> ConditionalUpdate:
    """Build the write that increases a key's hold; `budget`, `counters` and their values have the
    same meaning as in `key_hold`.
    """
    tier = "" if budget is None else _within_budget(*budget)
    # Another hold may have removed the counter of a window that is over.
    room = _within_quotas(counters)
    return ConditionalUpdate(
        "SET h.#h = :b, "
        + ", ".join(f"#{p} = #{p} - :x" for p in _PERIODS)
        + _count("+", range(counters)),
        "#on = :one AND ex > :second AND h.#h = :a AND "
        + " AND ".join(f"#{p} >= :x" for p in _PERIODS)
        + tier
        + room,
    )


def key_settle(counters: int = 0) -> ConditionalUpdate:
    """Build the write that replaces a hold by its cost, and takes `:c0` off the counter `#c0`.

    The write fails if the hold has added to counters (`#q`) of which the caller does not know.
    """
    return ConditionalUpdate(
        f"SET {_KEY_GIVE_BACK}, us = us + :c{_count('-', range(counters))} REMOVE h.#h"
        + (", #q" if counters else ""),
        "h.#h = :a" + ("" if counters else " AND attribute_not_exists(#q)"),
    )
