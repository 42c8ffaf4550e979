"""Pure rules for slices of a busy level's state: their number, and their parts of the limits.

DynamoDB limits the writes to one item, so a level (a team or member) with a single state item can
take only about 100 requests a second. A busier level gets 4 or 16 slices instead. Each slice is a
whole state item with its own partition, holds and buckets, and with a part of each of the level's
limits. The parts always add up to the limit, and a hold uses only one slice and what is left there.
Therefore all holds together never exceed the limit, and no hold needs to read other slices.

For example, a team may spend $100 a day. It has committed $60 (spent $50, holds $10) when its state
is divided into four slices. Every slice gets the same room, a quarter of the $40 that are left
(`even_parts`):

    slice            0     1     2     3     all
    committed       60     0     0     0      60     the slice's spending and holds
    room            10    10    10    10      40     what the slice can still hold
    part            70    10    10    10     100     the slice's limit: committed + room

After some hours slice 1 has committed $9 and has $1 left. A slice with too little room refuses, and
the hold tries the slice with the most room (`keys/slices.py`). The next round of maintenance makes
the rooms even again, in one transaction (`keys/slice_writes.py`):

    committed       63     9     4     1      77 room, before     7     1     6     9      23 room,
    after      6     6     6     5      23     as even as whole dollars allow part, after     69
    15    10     6     100     slices 0 and 3 gave slice 1 $5 of the limit

Rates are divided by time: each of four slices refills at a quarter of the speed (four times the
interval), with a quarter of the burst. The number of a wallet's shards grows by the same rule
(`grown_count`).
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from tollgate.stores.rules.account import HOLDS_CROWDED, UNLIMITED, KeyState, RateState
from tollgate.stores.rules.level_settings import LevelSettings
from tollgate.stores.rules.periods import PERIODS, bucket_names, minute_bucket

# Maximum number of a wallet's shards, and of a state's slices.
SLICES_MAX: Final = 16
# Number of holds per item above which a state gets more slices. This is a third of HOLDS_CROWDED,
# because maintenance sees only the current holds on a level, whereas requests mark a crowded wallet
# shard. The load may double twice before the next round.
SLICE_HOLDS_MAX: Final = 8
_GROWS_BY: Final = 4
# Requests per minute that one item can take, whatever their duration.
_COOL_REQUESTS: Final = 1_200
# Slices are uneven if one of them has less than half (1 / `_SHORT_PART`) of the mean room.
_SHORT_PART: Final = 2
# Ready and full time of a slice without a part of the rate, so far in the future that the slice
# admits no request.
_CLOSED_US: Final = 10**17


def grown_count(items: int, holds: int) -> int:
    """Return the new number of items for these holds: at least four times the current number."""
    new = items * _GROWS_BY
    while holds > new * SLICE_HOLDS_MAX:
        new *= _GROWS_BY
    return min(new, SLICES_MAX)


def may_be_hot(settings: LevelSettings) -> bool:
    """Return True if a level's limits allow more requests than one item can take."""
    requests, at_once = settings.requests_per_minute, settings.concurrency
    return (requests is None or requests > _COOL_REQUESTS) and (
        at_once is None or at_once > HOLDS_CROWDED
    )


def even_part(total: int, count: int, place: int) -> int:
    """Return the part at index `place` of a total that is divided into `count` even parts."""
    return total // count + (place < total % count)


def even_parts(total: int, committed: Sequence[int], held: Sequence[int]) -> list[int]:
    """Return each slice's part of a limit, so that all slices have the same room left.

    `committed` are the spending and holds of each slice, `held` only the holds. If a lowered limit
    is less than the sum of `committed`, no slice gets room, and the excess is cut from the parts:
    first from held amounts, which may come back unspent, then from spent amounts. No part is
    negative, so no slice begins the next period with a negative limit.

    For example, with a limit of 30, committed [20, 15, 5] and held [10, 0, 5], the excess of 10 is
    cut from the held amounts, and the parts are [13, 15, 2].
    """
    count = len(committed)
    room = total - sum(committed)
    if room >= 0:
        return [used + even_part(room, count, index) for index, used in enumerate(committed)]
    cut_of_held = _weighted_parts(min(-room, sum(held)), held)
    parts = [used - cut for used, cut in zip(committed, cut_of_held, strict=True)]
    cut_of_rest = _weighted_parts(sum(parts) - total, parts)
    return [part - cut for part, cut in zip(parts, cut_of_rest, strict=True)]


def _weighted_parts(amount: int, weights: Sequence[int]) -> list[int]:
    """Divide an amount in proportion to weights; their sum must not be less than the amount.

    No part exceeds its weight.
    """
    parts, left, weight_left = [], amount, sum(weights)
    for weight in weights:
        share = -(-left * weight // weight_left) if weight_left else 0
        parts.append(share)
        left, weight_left = left - share, weight_left - weight
    return parts


def rated_count(burst: int, count: int) -> int:
    """Return the number of slices with a part of the rate, which need a burst of at least 1."""
    return min(burst, count)


def rate_part(whole: RateState, count: int, place: int) -> RateState:
    """Return a full rate bucket with the slice's part of the rate."""
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
    """Return True if the slice with this bucket has no part of the rate."""
    return rate.full_us >= _CLOSED_US


def whole_rate(slices: Sequence[RateState]) -> RateState:
    """Return the combined rate of all slices; a request is admitted when any slice admits it."""
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
    """Combine slices into the state of the whole level, for the periods of a Unix second."""
    if len(slices) == 1:
        return slices[0]
    limits = {
        period: whole_limit([state.limits_nano_usd[period] for state in slices])
        for period in PERIODS
    }
    tokens = whole_limit([state.tokens_per_minute for state in slices])
    remaining_by_slice = [state.remaining_nano_usd(second) for state in slices]
    used = {
        period: sum(
            state.limits_nano_usd[period] - remaining[period]
            for state, remaining in zip(slices, remaining_by_slice, strict=True)
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
    """Return a state with the limits of the whole level and with what is left on the slice.

    A refusal from this state shows the level's limits instead of the slice's parts, which callers
    do not know.
    """
    remaining = slice_.remaining_nano_usd(second)
    free = max(0, slice_.concurrency - slice_.holds)
    return replace(
        whole,
        holds=whole.concurrency - free,
        buckets={
            **{
                name: remaining[period]
                for period, name in zip(PERIODS, bucket_names(second), strict=True)
            },
            minute_bucket(second): slice_.remaining_tokens(second),
        },
        rate=replace(whole.rate, full_us=slice_.rate.full_us, ready_us=slice_.rate.ready_us),
    )


def whole_limit(parts: Sequence[int]) -> int:
    """Return the limit that consists of these parts."""
    return UNLIMITED if UNLIMITED in parts else sum(parts)


def is_uneven(slices: Sequence[KeyState], second: int) -> bool:
    """Return True if any slice has less than half of the mean room."""
    rooms = [
        [state.remaining_nano_usd(second)[period] for state in slices]
        for period in PERIODS
        if slices[0].limits_nano_usd[period] != UNLIMITED
    ]
    # Tokens and concurrency become free within a minute, so their limits are compared instead of
    # their rooms.
    rooms += [
        [state.tokens_per_minute for state in slices],
        [state.concurrency for state in slices],
    ]
    return any(min(room) * _SHORT_PART * len(room) < sum(room) for room in rooms)
