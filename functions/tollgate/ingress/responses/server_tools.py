"""Parses the tools in a Responses request that the gateway can run."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from tollgate.core.content import ServerToolId
from tollgate.core.documents.reading import DocumentOptions
from tollgate.core.server_tools import ServerTool
from tollgate.ingress.responses.wire import server_tool_models as wire
from tollgate.ingress.shared.ignored_fields import extra_fields
from tollgate.ingress.shared.server_tool_options import (
    parse_domains,
    parse_location,
    require_each_once,
    require_one_reading,
    results_of,
)


def parse_response_tools(
    declared: Iterable[tuple[str, wire.ServerToolType]], *, uses_max: int | None
) -> tuple[ServerTool, ...]:
    """Return the declared tools that the gateway runs, each limited to `uses_max` uses.

    `declared` has each tool with the path of its type. Raises RequestError for a repeated tool.
    """
    tools = require_each_once(
        _tool(path, tool, id_)
        for path, tool in declared
        if not is_offline(tool) and (id_ := wire.tool_of_type(tool.type)) is not None
    )
    match uses_max:
        case None:
            return tools
        case 0:
            return ()
        case _:
            return tuple(_within(tool, uses_max) for tool in tools)


def _within(tool: ServerTool, uses_max: int) -> ServerTool:
    return replace(tool, uses_max=min(uses_max, tool.uses_max or uses_max))


def parse_response_reading(
    declared: Iterable[tuple[str, wire.ServerToolType]],
) -> DocumentOptions | None:
    """Return the options of reading documents; raise RequestError if there are several."""
    return require_one_reading(
        [
            DocumentOptions(engine=tool.engine, pages_max=tool.pages_max, field=path)
            for path, tool in declared
            if tool.type == "pdf"
        ]
    )


def is_offline(tool: wire.ServerToolType) -> bool:
    """Return True if a search must not reach the web, which the gateway's engines cannot do."""
    return tool.external_web_access is False


def _tool(path: str, tool: wire.ServerToolType, id_: ServerToolId) -> ServerTool:
    filters = tool.filters or wire.SearchFilters()
    return ServerTool(
        id=id_,
        uses_max=tool.max_uses,
        results_max=tool.max_results or results_of(tool.search_context_size),
        allowed_domains=parse_domains(filters.allowed_domains),
        blocked_domains=parse_domains(filters.blocked_domains),
        location=parse_location(tool.user_location),
        field=path,
        left_out_as=f"tools[]:{tool.type}",
    )


def unknown_options(tool: wire.ServerToolType) -> Iterator[str]:
    """Yield the names of options that have no effect."""
    yield from extra_fields(tool, "tools[].")
    if tool.filters is not None:
        yield from extra_fields(tool.filters, "tools[].filters.")
