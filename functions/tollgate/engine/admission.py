"""Admits requests that need costly work before the hold, so that a request that would be refused
does none of it.
"""

from tollgate.core.principal import Principal
from tollgate.engine.gateway import Gateway
from tollgate.routing.planning.exclusions import find_tier


async def admit(gateway: Gateway, principal: Principal, request_id: str) -> None:
    """Admit a request once; raise the refusal that its hold would get.

    The caller must call `gateway.admissions.end`, at the latest when the request ends.
    """
    tier = find_tier(gateway.planner.catalog, principal.tier)
    await gateway.admissions.admit(principal, request_id, tier=tier.limits if tier else None)
