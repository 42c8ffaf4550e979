"""Lets a provider compact a conversation, if the whole plan is at that provider."""

from msgspec.structs import replace

from tollgate.core.request import GenerationRequest
from tollgate.engine.gateway import Call
from tollgate.routing.planning.plan import Plan


def let_provider_compact(call: Call, plan: Plan) -> Call:
    """Return the call, with the provider's own compaction if the request asks for a compaction.

    A plan with other providers keeps the model's record, which a fallback can read. So does a
    request for a service tier, because `/responses/compact` has no field for tiers.
    """
    request = call.parsed.request
    if not isinstance(request, GenerationRequest) or request.compaction is None:
        return call
    if not (request.compaction.is_asked and plan.is_compacted_by_provider):
        return call
    if request.service_tier is not None:
        return call
    compaction = replace(request.compaction, by_provider=True)
    request = replace(request, compaction=compaction)
    return replace(call, parsed=replace(call.parsed, request=request))
