"""The remaining share of limits in USD, computed from the states that earlier holds returned."""

from collections.abc import Collection, Iterable, Sequence

from tollgate.core.quotas import Quota
from tollgate.stores.rules.account import UNLIMITED, KeyState
from tollgate.stores.rules.periods import PERIODS
from tollgate.stores.rules.quotas import used_percents


def least_percent_left(
    states: Iterable[Sequence[KeyState]], second: int, quotas: Collection[Quota] = ()
) -> int | None:
    """Return the smallest remaining share of any limit, in percent, rounded down.

    Each element of `states` has the slices of one key, member or team, the key first; `quotas` are
    the key's. Return None if nothing has a limit.
    """
    key, *levels = states
    shares = [percent for slices in (key, *levels) for percent in _shares(slices, second)]
    for state in key:
        shares += [max(0, 100 - used) for _, used in used_percents(state.counters, quotas, second)]
    return min(shares, default=None)


def _shares(slices: Sequence[KeyState], second: int) -> Iterable[int]:
    left = [each.remaining_nano_usd(second) for each in slices]
    for period in PERIODS:
        limit = sum(each.limits_nano_usd[period] for each in slices)
        if 0 < limit < UNLIMITED:
            yield max(0, 100 * sum(each[period] for each in left) // limit)
