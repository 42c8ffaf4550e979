"""Orders the attempts of a plan by the cooldowns and measurements that all instances share."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from tollgate.core.routing.endpoint_status import Speed
from tollgate.engine.gateway import Gateway
from tollgate.routing.planning.measured_sort import sort_measured
from tollgate.routing.planning.plan import Plan
from tollgate.stores.ports.base import CooldownStore, Hold


async def hold_and_order(
    gateway: Gateway, plan: Plan, holding: Coroutine[Any, Any, Hold]
) -> tuple[Hold, Plan]:
    """Hold money and, at the same time, read the cooldowns and speeds of the plan's endpoints.

    Returns the plan in its final order: sorted by measurements if the request asks for that, with
    endpoints in cooldown last, except one that this request probes.
    """
    # A single endpoint is tried even during its cooldown, so its state need not be read.
    if len(plan.attempts) == 1:
        return await holding, plan
    finding = gateway.cooldowns.find_resting(plan.endpoint_ids, gateway.cooldown)
    if plan.measured_sort is None:
        hold, resting = await asyncio.gather(holding, finding)
    else:
        hold, resting, speeds = await asyncio.gather(
            holding, finding, _find_speeds(gateway.cooldowns, plan)
        )
        plan = sort_measured(
            plan,
            speeds,
            request_id=hold.id,
            now_s=gateway.clock.now_s(),
            resting=resting,
        )
    plan = plan.under_quotas(hold.used_up)
    # The probe begins after the hold, because a refused request never reaches the endpoint.
    probe = await _begin_probe(gateway, plan, resting) if resting else None
    return hold, plan.resting_last(resting, probe=probe)


async def _find_speeds(store: CooldownStore, plan: Plan) -> Mapping[str, Speed]:
    """Return the speeds of the plan's endpoints for prompts of the request's size."""
    tokens = plan.trace.estimated_input_tokens
    names = {plan.speed_policy.measured_id(name, tokens): name for name in plan.endpoint_ids}
    speeds = await store.find_speeds(names)
    return {names[measured]: speed for measured, speed in speeds.items()}


async def _begin_probe(gateway: Gateway, plan: Plan, resting: Mapping[str, float]) -> str | None:
    """Return the endpoint for which this request becomes the probe; None if there is none."""
    for name in plan.probe_candidates(resting, gateway.clock.now_s()):
        if await gateway.cooldowns.begin_probe(name, gateway.cooldown):
            return name
    return None
