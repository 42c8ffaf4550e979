"""Applies prompt policies to search engines, OCR engines and hosts to which tools send texts.

A model that a tool calls, such as one for images, is planned under the same policies.
"""

from typing import Final

from msgspec.structs import replace

from tollgate.core.content import ServerToolId
from tollgate.core.errors import AccessError, ErrorCode, GatewayError, RequestError
from tollgate.core.principal import Principal
from tollgate.core.prompt_policy import UNSTATED, PromptPolicy, UnmetPolicy, find_unmet
from tollgate.core.request import GenerationRequest
from tollgate.routing.planning.catalog import Catalog

_OWNERS: Final = {"gateway": "this gateway", "request": "this request"}


def policies_of(
    catalog: Catalog, request: GenerationRequest, principal: Principal
) -> tuple[PromptPolicy, ...]:
    """Return the prompt policies that hold for a request."""
    section = catalog.defaults.prompt_policy
    of_gateway = None if section is None else section.policy
    stated = (of_gateway, *principal.prompt_policies, request.preferences.prompt_policy)
    return tuple(policy for policy in stated if policy is not None)


def leave_out_forbidden(
    catalog: Catalog, request: GenerationRequest, principal: Principal
) -> tuple[GenerationRequest, tuple[str, ...]]:
    """Return the request without tools that no policy allows, and the names of those tools.

    Raises the refusal of a tool that is required, or that the tool choice names.
    """
    policies = policies_of(catalog, request, principal)
    if not policies:
        return request, ()
    kept, left_out = [], []
    chosen = request.tool_choice.name if request.tool_choice is not None else None
    for tool in request.server_tools:
        unmet = _find_unmet(catalog, tool.id, policies)
        if unmet is None:
            kept.append(tool)
        elif tool.left_out_as is None or chosen == tool.id:
            raise refuse_receiver(tool.field or "tools", _receiver(catalog, tool.id), unmet)
        else:
            left_out.append(tool.left_out_as)
    return replace(request, server_tools=tuple(kept)), tuple(left_out)


def refuse_receiver(field: str, receiver: str, unmet: UnmetPolicy) -> GatewayError:
    """Return the refusal to send texts to a receiver: 400 if the request's own policy, else 403."""
    whose = _OWNERS.get(unmet.owner, f"the {unmet.owner}")
    message = (
        f"{field}: {receiver} is not known {unmet.demand}, as the prompt policy of {whose} demands."
    )
    if unmet.owner == "request":
        return RequestError(ErrorCode.INVALID_REQUEST, message, param=field)
    return AccessError(ErrorCode.PERMISSION_DENIED, message, param=field)


def _find_unmet(
    catalog: Catalog, tool: ServerToolId, policies: tuple[PromptPolicy, ...]
) -> UnmetPolicy | None:
    search = catalog.tools.section.web_search
    if tool == "web_search" and search is not None and search.engine is not None:
        return search.find_unmet(policies)
    # The address of a page may contain parts of the prompt, and hosts do not state their use of it.
    return find_unmet(policies, UNSTATED, ()) if tool == "web_fetch" else None


def _receiver(catalog: Catalog, tool: ServerToolId) -> str:
    search = catalog.tools.section.web_search
    if tool == "web_search" and search is not None:
        return f"the engine {search.engine}, which web_search uses,"
    return "a host from which web_fetch reads"
