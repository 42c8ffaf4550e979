"""The UTC periods of spending limits, and the buckets that count what is left in each period."""

import datetime as dt
from functools import lru_cache
from itertools import chain
from typing import Final, assert_never

from tollgate.core.limits import Period

PERIODS: Final[tuple[Period, ...]] = ("day", "week", "month", "total")
TOTAL_BUCKET: Final = "b_total"
_MINUTE_S: Final = 60
# How long a bucket is in use before its period (because clocks differ) and after it (until the last
# holds are settled).
_BUCKET_GRACE_S: Final = 3600


def day_name(second: int) -> str:
    """Return the UTC day of a Unix second: `20261121`."""
    return _utc(second).strftime("%Y%m%d")


# Cached, because a request needs these names about fifteen times, for one or two different seconds.
@lru_cache(maxsize=16)
def bucket_names(second: int) -> tuple[str, str, str, str]:
    """Return the bucket names for a Unix second, in the order of PERIODS; weeks are ISO weeks."""
    day = _utc(second)
    week = day.isocalendar()
    return (
        f"b_{day:%Y%m%d}",
        f"b_{week.year}W{week.week:02d}",
        f"b_{day:%Y%m}",
        TOTAL_BUCKET,
    )


def minute_bucket(second: int) -> str:
    """Return the name of the bucket that counts the tokens in the minute of a Unix second."""
    return f"t_{second // _MINUTE_S}"


def minute_ends_s(second: int) -> int:
    """Return the Unix second at which the next minute begins."""
    return (second // _MINUTE_S + 1) * _MINUTE_S


def live_buckets(period: Period, second: int) -> tuple[str, ...]:
    """Return the buckets for a period that may be in use at a Unix second."""
    index = PERIODS.index(period)
    seconds = (second - _BUCKET_GRACE_S, second, second + _BUCKET_GRACE_S)
    return tuple(dict.fromkeys(bucket_names(live_s)[index] for live_s in seconds))


def live_minutes(second: int) -> tuple[str, ...]:
    """Return the token buckets that may be in use at a Unix second."""
    return tuple(minute_bucket(second + step * _MINUTE_S) for step in (-1, 0, 1))


def stale_buckets(names: set[str], second: int) -> tuple[str, ...]:
    """Return the buckets among an item's attributes that are no longer in use."""
    stale = names - _live_names(second)
    return tuple(sorted(name for name in stale if name.startswith(("b_", "t_"))))


# Cached, because all holds placed in the same second need the same names.
@lru_cache(maxsize=16)
def _live_names(second: int) -> frozenset[str]:
    buckets = chain.from_iterable(live_buckets(period, second) for period in PERIODS)
    return frozenset((*buckets, *live_minutes(second)))


def period_ends_s(period: Period, second: int) -> int | None:
    """Return the Unix second at which the next period begins; None for `total`."""
    midnight = _utc(second).replace(hour=0, minute=0, second=0, microsecond=0)
    match period:
        case "day":
            return int((midnight + dt.timedelta(days=1)).timestamp())
        case "week":
            return int((midnight + dt.timedelta(days=7 - midnight.weekday())).timestamp())
        case "month":
            return int((midnight.replace(day=1) + dt.timedelta(days=32)).replace(day=1).timestamp())
        case "total":
            return None
        case _:
            assert_never(period)


def _utc(second: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(second, dt.UTC)
