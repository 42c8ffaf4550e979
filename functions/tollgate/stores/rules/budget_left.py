"""The remaining share of limits in USD, computed from the states that earlier holds returned."""

from collections.abc import Iterable, Sequence

from tollgate.stores.rules.account import UNLIMITED, KeyState
from tollgate.stores.rules.periods import PERIODS


def least_percent_left(states: Iterable[Sequence[KeyState]], second: int) -> int | None:
    """Return the smallest remaining share of any limit, in percent, rounded down.

    Each element has the slices of one key, member or team. Return None if no element has a limit.
    """
    return min((percent for slices in states for percent in _shares(slices, second)), default=None)


def _shares(slices: Sequence[KeyState], second: int) -> Iterable[int]:
    left = [each.remaining_nano_usd(second) for each in slices]
    for period in PERIODS:
        limit = sum(each.limits_nano_usd[period] for each in slices)
        if 0 < limit < UNLIMITED:
            yield max(0, 100 * sum(each[period] for each in left) // limit)
