"""Decides which requests a provider runs in batches of its own."""

from collections.abc import Callable
from typing import Final

from tollgate.core.content import ToolCall
from tollgate.core.dotted_names import DottedName
from tollgate.core.request import AssistantMessage, GenerationRequest, ToolMessage
from tollgate.core.work.base import InputWork, Work
from tollgate.engine.gateway import Call, Gateway
from tollgate.ingress.base import ParsedCall, ParsedWork
from tollgate.routing.planning.plan import Plan

# Imported if the catalog has guardrails.
_FIND_GUARDS: Final = DottedName[Callable[..., tuple[object, ...]]](
    "tollgate.engine.guardrails.guards:find_guards"
)


def find_batch_endpoint(gateway: Gateway, call: Call, plan: Plan) -> str | None:
    """Return the first endpoint of a plan if its provider can run the request in a batch.

    The gateway itself runs requests with server tools, and those under a prompt policy, because a
    provider stores the requests and answers of its batches. It also runs requests with tools or
    formats that the batches do not take, and those of batches that need a bucket that the
    deployment lacks.
    """
    first, request = plan.attempts[0], call.parsed.request
    if first.batch is None or _has_prompt_policy(gateway, call):
        return None
    if isinstance(request, InputWork) and not first.batch.takes(request.inputs):
        return None
    if isinstance(request, GenerationRequest) and request.server_tools:
        return None
    if not first.batch.limits.takes_tools and _uses_tools(request):
        return None
    if gateway.providers.provider(first.target.provider, call.principal).batches is None:
        return None
    return first.target.endpoint_id if can_wait_at_provider(gateway, call, plan) else None


def can_wait_at_provider(gateway: Gateway, call: Call, plan: Plan) -> bool:
    """Return whether the first endpoint of a plan can answer without further work of the gateway.

    Files, documents, guardrails and limits of sessions need work before or during the answer.
    Quotas of requests or tokens exclude a request, because a submission's hold counts only money.
    """
    first = plan.attempts[0]
    if first.target.guardrail or first.service_tier:
        return False
    if call.session is not None or not _is_plain(call.parsed):
        return False
    quotas = call.principal.key_quotas
    if any(each.unit != "usd" and each.covers(first.target.model) for each in quotas):
        return False
    has_guards = gateway.planner.catalog.guardrails or call.principal.guardrails
    return not (has_guards and _FIND_GUARDS()(gateway, call, plan))


def _has_prompt_policy(gateway: Gateway, call: Call) -> bool:
    return bool(
        call.principal.prompt_policies
        or gateway.planner.catalog.defaults.prompt_policy
        or call.parsed.request.preferences.prompt_policy
    )


def _is_plain(parsed: ParsedWork) -> bool:
    request = parsed.request
    if parsed.awaits is not None or request.names_files or request.has_documents:
        return False
    if isinstance(parsed, ParsedCall) and (parsed.window or parsed.edits or parsed.compacts):
        return False
    if isinstance(request, GenerationRequest):
        return not request.preferences.require_parameters
    return not request.addresses


def _uses_tools(request: Work) -> bool:
    """Return whether a request has tools, tool calls or results, or an output format."""
    if not isinstance(request, GenerationRequest):
        return False
    return bool(
        request.tools
        or request.output_format
        or any(
            isinstance(message, ToolMessage)
            or (
                isinstance(message, AssistantMessage)
                and any(isinstance(part, ToolCall) for part in message.content)
            )
            for message in request.messages
        )
    )
