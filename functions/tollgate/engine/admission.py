"""Admits requests whose work before the hold is costly, so that a refused request does none."""

from tollgate.core.principal import Principal
from tollgate.engine.gateway import Gateway
from tollgate.routing.planning.exclusions import find_tier


async def admit(gateway: Gateway, principal: Principal, request_id: str) -> None:
    """Admit a request once; raise the refusal that its hold would get.

    `gateway.admissions.end` must follow, at the latest when the request ends.
    """
    tier = find_tier(gateway.planner.catalog, principal.tier)
    await gateway.admissions.admit(principal, request_id, tier=tier.limits if tier else None)
