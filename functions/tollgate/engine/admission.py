"""Admits requests that need costly work before the hold, and reports the remaining share of
budgets.
"""

from tollgate.core.limits import TierLimits
from tollgate.core.principal import Principal
from tollgate.engine.gateway import Gateway
from tollgate.routing.planning.exclusions import find_tier


async def admit(gateway: Gateway, principal: Principal, request_id: str) -> None:
    """Admit a request once; raise the refusal that its hold would get.

    The caller must call `gateway.admissions.end`, at the latest when the request ends.
    """
    with gateway.refusals.repeating(principal.key_id, gateway.clock):
        await gateway.admissions.admit(principal, request_id, tier=_tier_limits(gateway, principal))


def budget_left_percent(gateway: Gateway, principal: Principal) -> int | None:
    """Return the smallest remaining share of the caller's USD limits, as of the last hold."""
    return gateway.ledger.budget_left_percent(principal, tier=_tier_limits(gateway, principal))


def _tier_limits(gateway: Gateway, principal: Principal) -> TierLimits | None:
    tier = find_tier(gateway.planner.catalog, principal.tier)
    return tier.limits if tier else None
