"""Ceilings of a request's cost, from the request, its key and its tier; the lowest one applies."""

from typing import Final

from tollgate.core.errors import AccessError, ErrorCode
from tollgate.core.limits import CostCeiling
from tollgate.core.money.amounts import nano_usd, usd_text
from tollgate.routing.planning.exclusions import Cause, Exclusion
from tollgate.routing.planning.plan import Plan
from tollgate.routing.schema import KeyTierSection

_CAUSES: Final = {
    "key": Cause.KEY_COST,
    "request": Cause.REQUEST_COST,
    "session": Cause.SESSION_COST,
}


def lowest_ceiling(
    ceiling: CostCeiling | None, tier: KeyTierSection | None
) -> tuple[int, Cause] | None:
    """Return the lowest ceiling of a request's cost, with its source; None if there is no ceiling.

    `ceiling` is the one of the request or its key.
    """
    ceilings: list[tuple[int, Cause]] = []
    if tier is not None and tier.max_cost_usd_per_request is not None:
        ceilings.append((nano_usd(tier.max_cost_usd_per_request), Cause.TIER_COST))
    if ceiling is not None:
        ceilings.append((ceiling.nano_usd, _CAUSES[ceiling.level]))
    return min(ceilings, key=lambda pair: pair[0], default=None)


def exclude_by_cost(
    cost_max_nano_usd: int, ceiling: CostCeiling | None, tier: KeyTierSection | None
) -> Exclusion | None:
    """Return the exclusion if a request may cost more than its lowest ceiling."""
    lowest = lowest_ceiling(ceiling, tier)
    if lowest is None or cost_max_nano_usd <= lowest[0]:
        return None
    most, cause = lowest
    return Exclusion(cause, amounts=(usd_text(cost_max_nano_usd), usd_text(most)))


def refuse_fees(plan: Plan, fees_nano_usd: int, ceiling: CostCeiling | None) -> None:
    """Raise AccessError if a plan together with further fees may cost more than its lowest ceiling.

    `ceiling` is the one of the request or its key.
    """
    most, cost_max_nano_usd = plan.ceiling_nano_usd, plan.cost_max_nano_usd + fees_nano_usd
    if most is None or cost_max_nano_usd <= most:
        return
    message = (
        f"This request may cost ${usd_text(cost_max_nano_usd)} with its guardrails, the limit is "
        f"${usd_text(most)}; ask for fewer tokens with max_tokens."
    )
    too_dear = AccessError(ErrorCode.KEY_LIMIT_EXCEEDED, message, param="max_tokens")
    if ceiling is not None and ceiling.nano_usd == most:
        too_dear.limit = ceiling.reached
    raise too_dear
