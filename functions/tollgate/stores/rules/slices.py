"""Slices of a busy level's state: how many there are, and each slice's part of the limits; pure.

DynamoDB limits the writes on one item, so a level whose state is one item can take only about 100
requests a second. A busier level (a team or a member) gets 4 or 16 slices instead: each slice is a
whole state item with its own partition, holds and buckets, and with a part of each of the level's
limits. The parts always add up to the limit, and a hold takes from one slice only what that slice
has left. Therefore holds on all slices together never exceed the limit, and no hold needs to read
the other slices.

For example, a team may spend $100 a day. It has committed $60 (spent $50, holds $10) when its state
is divided into four slices. Every slice gets the same room, a quarter of the $40 that are left
(`even_parts`):

    slice            0     1     2     3     all
    committed       60     0     0     0      60     spent and held on the slice
    room            10    10    10    10      40     what the slice may still hold
    part            70    10    10    10     100     the slice's limit: committed + room

After some hours slice 1 has committed $9 and has $1 left. A slice with too little room refuses, and
the hold tries the slice with the most room (`keys/slices.py`). The next round of maintenance makes
the rooms even again, in one transaction (`keys/slice_writes.py`):

    committed       63     9     4     1      77
    room, before     7     1     6     9      23
    room, after      6     6     6     5      23     as even as whole dollars can be
    part, after     69    15    10     6     100     slices 0 and 3 gave slice 1 $5 of the limit

A rate is divided by time instead: each of four slices refills at a quarter of the speed (four times
the interval), with a quarter of the burst. A wallet's shards grow in number by the same rule
(`grown_count`).
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from tollgate.stores.rules.account import HOLDS_CROWDED, UNLIMITED, KeyState, RateState
from tollgate.stores.rules.level_settings import LevelSettings
from tollgate.stores.rules.periods import PERIODS, bucket_names, minute_bucket

# The largest number of a wallet's shards, and of a state's slices.
SLICES_MAX: Final = 16
# A state gets slices above this many holds per item. This is a third of HOLDS_CROWDED, because the
# load may double twice before the next round of maintenance. For a level a round sees only the
# holds of one moment, whereas requests mark a crowded wallet shard themselves.
SLICE_HOLDS_MAX: Final = 8
_GROWS_BY: Final = 4
# Requests a minute that one item can take, however long they last.
_COOL_REQUESTS: Final = 1_200
# Slices are uneven if one has less than half (1 / `_SHORT_PART`) of the mean room.
_SHORT_PART: Final = 2
# Ready and full time of a slice without a part of the rate, so far ahead that none of its requests
# is ever in time.
_CLOSED_US: Final = 10**17


def grown_count(items: int, holds: int) -> int:
    """Return how many items are to share these holds: four times as many as now, or more."""
    new = items * _GROWS_BY
    while holds > new * SLICE_HOLDS_MAX:
        new *= _GROWS_BY
    return min(new, SLICES_MAX)


def may_be_hot(settings: LevelSettings) -> bool:
    """Return True if a level's own limits allow it more requests than one item takes."""
    requests, at_once = settings.requests_per_minute, settings.concurrency
    return (requests is None or requests > _COOL_REQUESTS) and (
        at_once is None or at_once > HOLDS_CROWDED
    )


def even_part(total: int, count: int, place: int) -> int:
    """Return the part at `place` if a total is divided evenly, up to 1, into `count` parts."""
    return total // count + (place < total % count)


def even_parts(total: int, committed: Sequence[int], held: Sequence[int]) -> list[int]:
    """Return each slice's part of a limit, so that all slices have the same room left.

    `committed` is what each slice has spent and holds, `held` is what each one holds. If all slices
    together have committed more than the limit (it was lowered), no slice gets room. Then the parts
    are cut below what is committed, by the excess: first by amounts that are held, because they may
    come back unspent, then by amounts that are spent. No part is negative, so no slice begins the
    next period with a negative limit.

    For example, with a limit of 30, committed [20, 15, 5] and held [10, 0, 5], the excess of 10 is
    cut from what is held, and the parts are [13, 15, 2].
    """
    count = len(committed)
    room = total - sum(committed)
    if room >= 0:
        return [used + even_part(room, count, place) for place, used in enumerate(committed)]
    cut_of_held = _weighted_parts(min(-room, sum(held)), held)
    parts = [used - cut for used, cut in zip(committed, cut_of_held, strict=True)]
    cut_of_rest = _weighted_parts(sum(parts) - total, parts)
    return [part - cut for part, cut in zip(parts, cut_of_rest, strict=True)]


def _weighted_parts(amount: int, weights: Sequence[int]) -> list[int]:
    """Divide an amount, at most the sum of the weights, into parts in proportion to the weights.

    No part exceeds its weight.
    """
    parts, left, weight_left = [], amount, sum(weights)
    for weight in weights:
        share = -(-left * weight // weight_left) if weight_left else 0
        parts.append(share)
        left, weight_left = left - share, weight_left - weight
    return parts


def rated_count(burst: int, count: int) -> int:
    """Return how many slices have a part of a rate: each of them needs a burst of at least 1."""
    return min(burst, count)


def rate_part(whole: RateState, count: int, place: int) -> RateState:
    """Return a full token bucket with this slice's share of the rate."""
    if whole.is_unlimited:
        return whole
    sharing = rated_count(whole.burst, count)
    interval_us = whole.interval_us * sharing
    if place >= sharing:
        return RateState(
            full_us=_CLOSED_US, ready_us=_CLOSED_US, interval_us=interval_us, slack_us=0
        )
    burst = even_part(whole.burst, sharing, place)
    return RateState(
        full_us=0, ready_us=0, interval_us=interval_us, slack_us=interval_us * (burst - 2)
    )


def is_closed(rate: RateState) -> bool:
    """Return True if a bucket is that of a slice without a part of the rate."""
    return rate.full_us >= _CLOSED_US


def whole_rate(slices: Sequence[RateState]) -> RateState:
    """Return the rate of the whole state, which admits a request as soon as one slice does."""
    sharing = [rate for rate in slices if not is_closed(rate)]
    if not sharing or slices[0].is_unlimited:
        return slices[0]
    interval_us = slices[0].interval_us // len(sharing)
    return RateState(
        full_us=max(rate.full_us for rate in sharing),
        ready_us=min(rate.ready_us for rate in sharing),
        interval_us=interval_us,
        slack_us=interval_us * (sum(rate.burst for rate in sharing) - 2),
    )


def whole_state(slices: Sequence[KeyState], second: int) -> KeyState:
    """Return the state that the slices are together, in the periods of a second."""
    if len(slices) == 1:
        return slices[0]
    limits = {
        period: whole_limit([state.limits_nano_usd[period] for state in slices])
        for period in PERIODS
    }
    tokens = whole_limit([state.tokens_per_minute for state in slices])
    left = [state.remaining_nano_usd(second) for state in slices]
    used = {
        period: sum(
            state.limits_nano_usd[period] - remaining[period]
            for state, remaining in zip(slices, left, strict=True)
        )
        for period in PERIODS
    }
    used_tokens = sum(state.tokens_per_minute - state.remaining_tokens(second) for state in slices)
    return replace(
        slices[0],
        concurrency=sum(state.concurrency for state in slices),
        holds=sum(state.holds for state in slices),
        limits_nano_usd=limits,
        buckets={
            **{
                name: limits[period] - used[period]
                for period, name in zip(PERIODS, bucket_names(second), strict=True)
            },
            minute_bucket(second): tokens - used_tokens,
        },
        rate=whole_rate([state.rate for state in slices]),
        tokens_per_minute=tokens,
    )


def slice_of_whole(slice_: KeyState, whole: KeyState, second: int) -> KeyState:
    """Return a slice's state with the limits of the whole level, and with what is left on the
    slice.

    A refusal made from it states the level's limits, not the slice's parts, which callers do not
    know.
    """
    left = slice_.remaining_nano_usd(second)
    free = max(0, slice_.concurrency - slice_.holds)
    return replace(
        whole,
        holds=whole.concurrency - free,
        buckets={
            **{
                name: left[period]
                for period, name in zip(PERIODS, bucket_names(second), strict=True)
            },
            minute_bucket(second): slice_.remaining_tokens(second),
        },
        rate=replace(whole.rate, full_us=slice_.rate.full_us, ready_us=slice_.rate.ready_us),
    )


def whole_limit(parts: Sequence[int]) -> int:
    """Return the limit that these parts add up to."""
    return UNLIMITED if UNLIMITED in parts else sum(parts)


def is_uneven(slices: Sequence[KeyState], second: int) -> bool:
    """Return True if a slice has less than half of the mean room of all slices."""
    rooms = [
        [state.remaining_nano_usd(second)[period] for state in slices]
        for period in PERIODS
        if slices[0].limits_nano_usd[period] != UNLIMITED
    ]
    # Tokens and concurrency become free within a minute, so their parts count here, not their
    # rooms.
    rooms += [
        [state.tokens_per_minute for state in slices],
        [state.concurrency for state in slices],
    ]
    return any(min(room) * _SHORT_PART * len(room) < sum(room) for room in rooms)
