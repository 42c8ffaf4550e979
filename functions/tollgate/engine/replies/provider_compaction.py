"""Lets a provider compact a conversation, if the whole plan is at that provider."""

from msgspec.structs import replace

from tollgate.core.records.generation import RoutingTrace
from tollgate.core.request import GenerationRequest
from tollgate.engine.gateway import Call
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.plan import Plan


def let_provider_compact(call: Call, plan: Plan, catalog: Catalog) -> Call:
    """Return the call, with the provider's own compaction if the request asks for a compaction.

    A plan with other providers keeps the model's record, which a fallback can read. So does a
    request for a service tier, because `/responses/compact` has no field for tiers, and a request
    that follows a rule for compactions, because the route's other rules may lead elsewhere.
    """
    request = call.parsed.request
    if not isinstance(request, GenerationRequest) or request.compaction is None:
        return call
    if not (request.compaction.is_asked and plan.is_compacted_by_provider):
        return call
    if request.service_tier is not None or _follows_compaction_rule(catalog, plan.trace):
        return call
    compaction = replace(request.compaction, by_provider=True)
    request = replace(request, compaction=compaction)
    return replace(call, parsed=replace(call.parsed, request=request))


def _follows_compaction_rule(catalog: Catalog, trace: RoutingTrace) -> bool:
    if trace.route is None or trace.rule is None:
        return False
    condition = catalog.routes[trace.route].all_rules[trace.rule - 1].condition
    return condition is not None and condition.compaction is True
