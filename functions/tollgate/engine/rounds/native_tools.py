"""Lets providers run server tools if routing.yaml says so and the provider is able to."""

from msgspec.structs import replace

from tollgate.core.request import GenerationRequest
from tollgate.core.server_tools import ServerTool
from tollgate.providers.ports.base import NativeSearch, Target


def leave_to_provider(request: GenerationRequest, target: Target) -> GenerationRequest:
    """Return the request with the tools that the provider runs, and without the gateway's functions
    for these tools.
    """
    left = tuple(tool for tool in request.server_tools if _runs_at_provider(tool, request, target))
    names = {tool.id for tool in left}
    return replace(
        request,
        server_tools=left,
        tools=tuple(tool for tool in request.tools if tool.name not in names),
    )


def leave_fewer(tools: tuple[ServerTool, ...], searches: int) -> tuple[ServerTool, ...]:
    """Return the tools for the next round; once the provider has used up its searches, the gateway
    searches.
    """
    return tuple(
        replace(
            tool,
            uses_max=max(0, (tool.uses_max or 0) - searches),
            by_provider=(tool.uses_max or 0) > searches,
        )
        if tool.by_provider
        else tool
        for tool in tools
    )


def _runs_at_provider(tool: ServerTool, request: GenerationRequest, target: Target) -> bool:
    search, choice = target.native_search, request.tool_choice
    if search is None or tool.id != "web_search" or not tool.by_provider:
        return False
    if choice is not None and (choice.mode == "none" or choice.name == tool.id):
        # A forced search stays a function of the gateway, and `none` must stop the provider as
        # well.
        return False
    # Such endpoints may implement an output format as a function, or refuse it just as they refuse
    # functions.
    has_functions = request.output_format or any(each.name != tool.id for each in request.tools)
    return _takes_domains(search, tool) and (search.beside_functions or not has_functions)


def _takes_domains(search: NativeSearch, tool: ServerTool) -> bool:
    if tool.allowed_domains and tool.blocked_domains:
        return False
    return (search.allows_domains or not tool.allowed_domains) and (
        search.blocks_domains or not tool.blocked_domains
    )
