"""Offers the server tools in a request to the model, or drops them."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.content import ServerToolId
from tollgate.core.dotted_names import DottedName
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.principal import Principal
from tollgate.core.request import GenerationRequest
from tollgate.core.work.base import Work
from tollgate.engine.rounds.tool_injection import InjectedTools, inject_tools
from tollgate.engine.tool_policies import leave_out_forbidden
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.planner import Planner
from tollgate.tools.ports.base import ServerTools

if TYPE_CHECKING:
    from tollgate.routing.planning.presets import CompletedRequest

# Imported with the first preset.
_COMPLETE_REQUEST: Final = DottedName[Callable[[Catalog, GenerationRequest], "CompletedRequest"]](
    "tollgate.routing.planning.presets:complete_request"
)


class OfferedTools(Struct, frozen=True, kw_only=True):
    """A request whose tools include the server tools that the gateway runs."""

    request: GenerationRequest
    injected: InjectedTools | None = None
    """Tools that the gateway runs; None if there are none."""
    left_out: tuple[str, ...] = ()
    """Names of requested tools that were dropped, because the gateway does not run them."""


def offer_server_tools(
    tools: ServerTools | None, planner: Planner, request: GenerationRequest, principal: Principal
) -> OfferedTools:
    """Return the request with server tools as functions; raise RequestError if one cannot run."""
    injected: InjectedTools | None = None
    request, forbidden = leave_out_forbidden(planner.catalog, request, principal)
    if tools is not None:
        # A tool that calls a model, such as one for images, does so under the request's policy.
        policies = principal.policies_on_behalf(request.preferences.prompt_policy)
        principal = replace(principal, work_policies=policies)
        request, injected = inject_tools(tools, planner, request, principal)
    served = {each.tool.id for each in injected.by_name.values()} if injected else ()
    request, left_out = _leave_out_unserved(request, served)
    return OfferedTools(request=request, injected=injected, left_out=(*forbidden, *left_out))


def plan_rounds(
    make_tools: Callable[[Catalog], ServerTools] | None,
    planner: Planner,
    work: Work,
    principal: Principal,
) -> tuple[Work, InjectedTools | None]:
    """Return work as `generate` would plan it, with its preset, its tools and their limits; run no
    tool.
    """
    if not isinstance(work, GenerationRequest):
        return work, None
    if work.preset is not None:
        work = _COMPLETE_REQUEST()(planner.catalog, work).request
    if not work.server_tools:
        return work, None
    tools = make_tools(planner.catalog) if make_tools is not None else None
    offer = offer_server_tools(tools, planner, work, principal)
    return offer.request, offer.injected


def _leave_out_unserved(
    request: GenerationRequest, served: Collection[ServerToolId]
) -> tuple[GenerationRequest, tuple[str, ...]]:
    """Return the request without tools that are not run here, and the names of those tools.

    Raises RequestError for a required tool, or for a tool choice that needs a missing tool.
    """
    left_out = [tool for tool in request.server_tools if tool.id not in served]
    for tool in left_out:
        if tool.left_out_as is None:
            raise _refused(tool.field, f"needs {tool.id}, which this gateway does not run")
    served_tools = tuple(tool for tool in request.server_tools if tool.id in served)
    choice = request.tool_choice
    if choice is not None and choice.name in {tool.id for tool in left_out}:
        raise _refused("tool_choice", f"names {choice.name}, which this gateway does not run")
    if choice is not None and not request.tools:
        if choice.mode == "required":
            raise _refused("tool_choice", "must not be 'required' without a tool that runs here")
        # Without tools, a tool choice has no effect, and some providers refuse it.
        choice = None
    names = tuple(tool.left_out_as for tool in left_out if tool.left_out_as is not None)
    return replace(request, server_tools=served_tools, tool_choice=choice), names


def _refused(param: str, problem: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, f"{param} {problem}.", param=param)
