"""Warnings about spending limits that are used to a certain percentage."""

from tollgate.core.limits import LimitWarning
from tollgate.stores.rules.account import UNLIMITED, KeyState
from tollgate.stores.rules.periods import PERIODS
from tollgate.stores.rules.quotas import QuotaRequest, used_percents


def find_warning(
    state: KeyState, from_percent: int | None, second: int, quotas: QuotaRequest
) -> LimitWarning | None:
    """Return the limit with the highest used percentage, if that is at least `from_percent`.

    A quota is considered only if it counts one of the plan's models.
    """
    if from_percent is None:
        return None
    remaining = state.remaining_nano_usd(second)
    warnings = [
        LimitWarning(period=period, percent=100 * (limit - remaining[period]) // limit)
        for period in PERIODS
        if (limit := state.limits_nano_usd[period]) != UNLIMITED
    ]
    counting = (quota for quota in quotas.quotas if quota.covers_any(quotas.models))
    warnings += [
        LimitWarning(period=quota.per, percent=percent, models=quota.models)
        for quota, percent in used_percents(state.counters, counting, second)
    ]
    largest = max(warnings, key=lambda warning: warning.percent, default=None)
    return largest if largest is not None and largest.percent >= from_percent else None
