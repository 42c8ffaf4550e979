"""The tools of the gateway that a request switches on: offered to the model, or left out."""

from collections.abc import Collection

from msgspec.structs import replace

from tollgate.core.content import ServerToolId
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.request import GenerationRequest
from tollgate.engine.gateway import Call, Gateway
from tollgate.engine.tool_injection import InjectedTools, inject_tools


def offer_server_tools(
    gateway: Gateway, call: Call, request: GenerationRequest
) -> tuple[Call, InjectedTools | None, tuple[str, ...]]:
    """Return the call with the tools that run here beside its own, those tools, and other names.

    The names are of tools that are left out. Raises RequestError for a tool that nothing runs and
    that must not be left out.
    """
    injected: InjectedTools | None = None
    if gateway.tools is not None:
        request, injected = inject_tools(gateway.tools, gateway.planner, request, call.principal)
    served = {each.tool.id for each in injected.by_name.values()} if injected else ()
    request, left_out = _leave_out_unserved(request, served)
    return replace(call, parsed=replace(call.parsed, request=request)), injected, left_out


def _leave_out_unserved(
    request: GenerationRequest, served: Collection[ServerToolId]
) -> tuple[GenerationRequest, tuple[str, ...]]:
    """Return the request with the tools that are served, and the names of the others.

    Raises RequestError at the field of a tool without which the answer would be another one, or of
    a choice that needs a tool which is left out.
    """
    left_out = [tool for tool in request.server_tools if tool.id not in served]
    for tool in left_out:
        if tool.left_out_as is None:
            raise _refused(tool.field, f"needs {tool.id}, which this gateway does not run")
    kept = tuple(tool for tool in request.server_tools if tool.id in served)
    choice = request.tool_choice
    if choice is not None and choice.name in {tool.id for tool in left_out}:
        raise _refused("tool_choice", f"names {choice.name}, which this gateway does not run")
    if choice is not None and not request.tools:
        if choice.mode == "required":
            raise _refused("tool_choice", "must not be 'required' without a tool that runs here")
        # Some providers refuse a choice among no tools, where it has no effect.
        choice = None
    names = tuple(tool.left_out_as for tool in left_out if tool.left_out_as is not None)
    return replace(request, server_tools=kept, tool_choice=choice), names


def _refused(param: str, what: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, f"{param} {what}.", param=param)
