"""Adds the gateway's tools to a request's functions, and limits the rounds."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from pydantic_core import to_json

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.principal import Principal
from tollgate.core.records.generation import RoundsBound
from tollgate.core.request import GenerationRequest, Tool
from tollgate.core.server_tools import ServerTool
from tollgate.routing.planning.planner import Planner
from tollgate.tools.ports.base import RequestTools, ServerTools, ToolBound

# Maximum number of tool runs per round; any further call gets an error as its result.
RUNS_PER_ROUND_MAX: Final = 8
# Maximum number of calls per round that get a result, because every result makes the next prompt
# longer.
CALLS_PER_ROUND_MAX: Final = 16
# Tokens for the text around a result, or for the message about a call that was not run.
_ENVELOPE_TOKENS: Final = 128
_REFUSAL_TOKENS: Final = 32


class Injected(Struct, frozen=True, kw_only=True):
    """A server tool in one request, with its declaration and limits."""

    tool: ServerTool
    declared: Tool
    bound: ToolBound


class InjectedTools(Struct, frozen=True, kw_only=True):
    """The server tools of one request, keyed by the name that the model calls."""

    tools: RequestTools
    by_name: Mapping[str, Injected]
    bound: RoundsBound


def inject_tools(
    configured: ServerTools, planner: Planner, request: GenerationRequest, principal: Principal
) -> tuple[GenerationRequest, InjectedTools | None]:
    """Return the request with the gateway's configured tools added to the caller's.

    If there are no such tools, or the limit is one round, the request is returned unchanged. Raises
    RequestError if several choices are requested, or for a function with the name of a server tool.
    """
    rounds_max = planner.catalog.defaults.rounds_max
    if rounds_max == 1:
        return request, None
    route = planner.route_of(request.model)
    tools = configured.open(request, route=route, principal=principal)
    by_name = {
        declared.name: Injected(tool=tool, declared=declared, bound=tools.bound(tool))
        for tool in request.server_tools
        if (declared := tools.declare(tool)) is not None
    }
    if not by_name:
        return request, None
    _require_one_answer(request, by_name)
    added = tuple(each.declared for each in by_name.values())
    extended_request = replace(
        request,
        tools=(*request.tools, *added),
        server_tools=tuple(tools.native(tool) or tool for tool in request.server_tools),
        size_bytes=request.size_bytes + sum(map(_size, added)),
    )
    bounds = [each.bound for each in by_name.values()]
    injected = InjectedTools(
        tools=tools,
        by_name=by_name,
        bound=RoundsBound(
            rounds_max=rounds_max,
            result_tokens=rounds_max * CALLS_PER_ROUND_MAX * _REFUSAL_TOKENS
            + sum(bound.uses_max * (bound.result_tokens + _ENVELOPE_TOKENS) for bound in bounds),
            fees_nano_usd=sum(bound.fees_nano_usd for bound in bounds),
            provider_searches_max=sum(
                tool.uses_max or 0 for tool in extended_request.server_tools if tool.by_provider
            ),
        ),
    )
    return extended_request, injected


def _require_one_answer(request: GenerationRequest, by_name: Mapping[str, Injected]) -> None:
    """Raise RequestError for options that cannot be combined with rounds."""
    options = {
        "n": request.choices > 1,
        "prompt": bool(request.further),
        "echo": request.echo,
        "suffix": request.suffix is not None,
    }
    for name, is_stated in options.items():
        if is_stated:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"{name} cannot be combined with tools that the gateway runs.",
                param=name,
            )
    for tool in request.tools:
        if tool.name in by_name:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"tools has a function named {tool.name}, which is a tool that the gateway runs.",
                param="tools",
            )


def _size(tool: Tool) -> int:
    return len(tool.name) + len(tool.description or "") + len(to_json(dict(tool.parameters)))
