"""Parses the tools in a Messages request that the gateway can run."""

from collections.abc import Iterable

from tollgate.core.content import ServerToolId
from tollgate.core.documents.reading import DocumentOptions
from tollgate.core.server_tools import ServerTool
from tollgate.ingress.messages.wire.server_tool_models import PDF, ServerToolType, tool_of_type
from tollgate.ingress.shared.media import field_refusal
from tollgate.ingress.shared.server_tool_options import (
    parse_domains,
    parse_location,
    require_each_once,
    require_one_reading,
)


def parse_message_tools(tools: Iterable[object]) -> tuple[ServerTool, ...]:
    """Return the declared tools that the gateway runs; RequestError with the field at fault."""
    return require_each_once(
        _tool(tool, id_, f"tools[{number}]")
        for number, tool in enumerate(tools)
        if isinstance(tool, ServerToolType) and (id_ := tool_of_type(tool.type)) is not None
    )


def parse_message_reading(tools: Iterable[object]) -> DocumentOptions | None:
    """Return the options of reading documents; raise RequestError if there are several."""
    return require_one_reading(
        [
            DocumentOptions(
                engine=tool.engine, pages_max=tool.pages_max, field=f"tools[{number}].type"
            )
            for number, tool in enumerate(tools)
            if isinstance(tool, ServerToolType) and tool.type == PDF
        ]
    )


def _tool(tool: ServerToolType, id_: ServerToolId, path: str) -> ServerTool:
    if tool.name not in (None, id_):
        raise field_refusal(f"{path}.name", f"must be '{id_}'")
    if tool.allowed_domains and tool.blocked_domains:
        raise field_refusal(f"{path}.blocked_domains", "must not be given with allowed_domains")
    return ServerTool(
        id=id_,
        uses_max=tool.max_uses,
        results_max=tool.max_results,
        allowed_domains=parse_domains(tool.allowed_domains),
        blocked_domains=parse_domains(tool.blocked_domains),
        location=parse_location(tool.user_location),
        field=f"{path}.type",
    )
