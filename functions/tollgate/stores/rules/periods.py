"""The periods of key limits, in UTC, and the buckets that count what is left in each."""

import datetime as dt
from functools import lru_cache
from itertools import chain
from typing import Final, assert_never

from tollgate.core.limits import Period

PERIODS: Final[tuple[Period, ...]] = ("day", "week", "month", "total")
TOTAL_BUCKET: Final = "b_total"
_MINUTE_S: Final = 60
# How long a bucket is live after its period, by when the holds taken from it are settled or swept.
# A bucket is live as long before its period, because another instance's clock may be ahead.
_BUCKET_GRACE_S: Final = 3600


def day_name(second: int) -> str:
    """Return the UTC day of a Unix second: `20261121`."""
    return _utc(second).strftime("%Y%m%d")


# A request needs the names of one or two seconds some fifteen times.
@lru_cache(maxsize=16)
def bucket_names(second: int) -> tuple[str, str, str, str]:
    """Return the bucket names of a Unix second, in the order of PERIODS.

    Weeks are ISO weeks, which start on Monday.
    """
    moment = _utc(second)
    week = moment.isocalendar()
    return (
        f"b_{moment:%Y%m%d}",
        f"b_{week.year}W{week.week:02d}",
        f"b_{moment:%Y%m}",
        TOTAL_BUCKET,
    )


def minute_bucket(second: int) -> str:
    """Return the name of the bucket that counts the tokens of a Unix second's minute."""
    return f"t_{second // _MINUTE_S}"


def minute_ends_s(second: int) -> int:
    """Return the Unix second at which the next minute of tokens begins."""
    return (second // _MINUTE_S + 1) * _MINUTE_S


def live_buckets(period: Period, second: int) -> tuple[str, ...]:
    """Return a period's buckets that a writer may touch now, since clocks differ and holds end
    later.
    """
    place = PERIODS.index(period)
    moments = (second - _BUCKET_GRACE_S, second, second + _BUCKET_GRACE_S)
    return tuple(dict.fromkeys(bucket_names(moment)[place] for moment in moments))


def live_minutes(second: int) -> tuple[str, ...]:
    """Return the token buckets that a writer may touch now."""
    return tuple(minute_bucket(second + step * _MINUTE_S) for step in (-1, 0, 1))


def stale_buckets(names: set[str], second: int) -> tuple[str, ...]:
    """Return the buckets among an item's attributes that no writer touches any more."""
    stale = names - _live_names(second)
    return tuple(sorted(name for name in stale if name.startswith(("b_", "t_"))))


# Every hold of the same second needs the same names.
@lru_cache(maxsize=16)
def _live_names(second: int) -> frozenset[str]:
    buckets = chain.from_iterable(live_buckets(period, second) for period in PERIODS)
    return frozenset((*buckets, *live_minutes(second)))


def period_ends_s(period: Period, second: int) -> int | None:
    """Return the Unix second at which a period's limit is renewed, None if it never is."""
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
