"""Slices of a hot state, shards of a hot wallet: their number, and the part that each has; pure.

The parts of a limit add up to it at any moment, so that no hold on any of them passes the whole.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from tollgate.stores.rules.account import HOLDS_CROWDED, UNLIMITED, KeyState, RateState
from tollgate.stores.rules.level_settings import LevelSettings
from tollgate.stores.rules.periods import PERIODS, bucket_names, minute_bucket

# Of a wallet's shards, and of a state's slices.
SLICES_MAX: Final = 16
# A third of what crowds a wallet's shard: by the next round the load may have doubled and doubled
# again. With more a level gets slices: a sweep sees it at one moment, and no request marks it.
SLICE_HOLDS_MAX: Final = 8
_GROWS_BY: Final = 4
# So many requests a minute one item takes, whatever they last.
_COOL_REQUESTS: Final = 1_200
# A slice with less than this part of the mean gets more.
_SHORT_PART: Final = 2
# Stands for the bucket of a slice that has no part of a rate: no request of it is ever in time.
_CLOSED_US: Final = 10**17


def grown_count(items: int, holds: int) -> int:
    """Return how many items are to share so many holds: four times as many, or more."""
    new = items * _GROWS_BY
    while holds > new * SLICE_HOLDS_MAX:
        new *= _GROWS_BY
    return min(new, SLICES_MAX)


def may_be_hot(settings: LevelSettings) -> bool:
    """Return whether a level's own limits allow it more than one item takes."""
    requests, at_once = settings.requests_per_minute, settings.concurrency
    return (requests is None or requests > _COOL_REQUESTS) and (
        at_once is None or at_once > HOLDS_CROWDED
    )


def even_part(total: int, count: int, place: int) -> int:
    """Return one of `count` parts of a total that are as even as integers can be."""
    return total // count + (place < total % count)


def even_parts(total: int, committed: Sequence[int], held: Sequence[int]) -> list[int]:
    """Return parts of a limit that leave the same room in each.

    `committed` is what each slice has spent and holds, `held` the part of it that is held. Where
    all of them have committed more than the total, none has room: first what is held makes up for
    it, because it is what may come back, then the rest. No part is negative, so that none is when
    the next period begins.
    """
    count = len(committed)
    room = total - sum(committed)
    if room >= 0:
        return [it + even_part(room, count, place) for place, it in enumerate(committed)]
    owed = _weighted_parts(min(-room, sum(held)), held)
    left = [it - lent for it, lent in zip(committed, owed, strict=True)]
    rest = _weighted_parts(sum(left) - total, left)
    return [it - lent for it, lent in zip(left, rest, strict=True)]


def _weighted_parts(amount: int, weights: Sequence[int]) -> list[int]:
    """Return an amount, at most the sum of all weights, in parts that are at most their weights."""
    parts, left, weight_left = [], amount, sum(weights)
    for weight in weights:
        share = -(-left * weight // weight_left) if weight_left else 0
        parts.append(share)
        left, weight_left = left - share, weight_left - weight
    return parts


def rated_count(burst: int, count: int) -> int:
    """Return how many of the slices have a part of a rate: each needs a request of its burst."""
    return min(burst, count)


def rate_part(whole: RateState, count: int, place: int) -> RateState:
    """Return the full bucket of one slice for its part of a rate."""
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
    """Return whether a bucket is that of a slice without a part of the rate."""
    return rate.full_us >= _CLOSED_US


def whole_rate(slices: Sequence[RateState]) -> RateState:
    """Return the bucket that the slices share: ready as soon as one of them is."""
    sharing = [it for it in slices if not is_closed(it)]
    if not sharing or slices[0].is_unlimited:
        return slices[0]
    interval_us = slices[0].interval_us // len(sharing)
    return RateState(
        full_us=max(it.full_us for it in sharing),
        ready_us=min(it.ready_us for it in sharing),
        interval_us=interval_us,
        slack_us=interval_us * (sum(it.burst for it in sharing) - 2),
    )


def whole_state(slices: Sequence[KeyState], second: int) -> KeyState:
    """Return what the slices of a state allow together in the periods of a second."""
    if len(slices) == 1:
        return slices[0]
    limits = {
        period: whole_limit([it.limits_nano_usd[period] for it in slices]) for period in PERIODS
    }
    tokens = whole_limit([it.tokens_per_minute for it in slices])
    left = [it.remaining_nano_usd(second) for it in slices]
    used = {
        period: sum(
            it.limits_nano_usd[period] - of_it[period]
            for it, of_it in zip(slices, left, strict=True)
        )
        for period in PERIODS
    }
    used_tokens = sum(it.tokens_per_minute - it.remaining_tokens(second) for it in slices)
    return replace(
        slices[0],
        concurrency=sum(it.concurrency for it in slices),
        holds=sum(it.holds for it in slices),
        limits_nano_usd=limits,
        buckets={
            **{
                name: limits[period] - used[period]
                for period, name in zip(PERIODS, bucket_names(second), strict=True)
            },
            minute_bucket(second): tokens - used_tokens,
        },
        rate=whole_rate([it.rate for it in slices]),
        tokens_per_minute=tokens,
    )


def slice_of_whole(slice_: KeyState, whole: KeyState, second: int) -> KeyState:
    """Return a slice that allows what it allows, and has the limits of the whole.

    A refusal made of it says what the level's limits are, and not what this slice's part is.
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
    """Return the limit of which these are the parts."""
    return UNLIMITED if UNLIMITED in parts else sum(parts)


def is_uneven(slices: Sequence[KeyState], second: int) -> bool:
    """Return whether a slice has less than half of what it would have if all had the same."""
    rooms = [
        [it.remaining_nano_usd(second)[period] for it in slices]
        for period in PERIODS
        if slices[0].limits_nano_usd[period] != UNLIMITED
    ]
    # These are free again within a minute: what counts is how they are divided.
    rooms += [[it.tokens_per_minute for it in slices], [it.concurrency for it in slices]]
    return any(min(room) * _SHORT_PART * len(room) < sum(room) for room in rooms)
