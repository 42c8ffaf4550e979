"""Parses the tools and the tool choice of a Responses request.

Only OpenAI's servers support namespaces, so tools in a namespace get unique flat names for
providers. In the reply, they have the namespace and the short name again.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator
from typing import Final, assert_never

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.content import ServerToolId
from tollgate.core.documents.reading import DocumentOptions
from tollgate.core.request import Grammar, TextInput, Tool, ToolChoice
from tollgate.core.server_tools import ServerTool
from tollgate.ingress.base import NamespacedName
from tollgate.ingress.responses.wire import tool_models as wire
from tollgate.ingress.responses.wire.server_tool_models import (
    SearchFilters,
    ServerToolType,
    tool_of_type,
)
from tollgate.ingress.shared.fields import extra_fields
from tollgate.ingress.shared.media import field_refusal
from tollgate.ingress.shared.server_tool_options import (
    parse_domains,
    parse_location,
    require_each_once,
    require_one_reading,
    results_of,
)
from tollgate.ingress.shared.wire.request_fields import AnyText
from tollgate.ingress.shared.wire.request_model import unknown_of

# OpenAI's limit, which compatible servers share.
_NAME_LENGTH_MAX: Final = 64
_DIGEST_LENGTH: Final = 8
_BETWEEN: Final = "__"


class ToolNames:
    """Unique names for tools in namespaces, which are sent to providers."""

    def __init__(self, plain: Collection[str]) -> None:
        self._taken = set(plain)
        self._names: dict[NamespacedName, str] = {}

    def name_of(self, name: str, namespace: str | None) -> str:
        """Return a tool's name for providers, which is unique within the request."""
        if not namespace:
            return name
        declared_name = NamespacedName(namespace=namespace, name=name)
        flat_name = self._names.get(declared_name)
        if flat_name is None:
            joined = f"{namespace}{_BETWEEN}{name}"
            if len(joined) > _NAME_LENGTH_MAX or joined in self._taken:
                digest = hashlib.sha256(f"{namespace}\0{name}".encode()).hexdigest()
                prefix = joined[: _NAME_LENGTH_MAX - _DIGEST_LENGTH - 1]
                joined = f"{prefix}_{digest[:_DIGEST_LENGTH]}"
            flat_name = self._names[declared_name] = joined
            self._taken.add(joined)
        return flat_name

    @property
    def namespaced(self) -> dict[str, NamespacedName]:
        """The namespace and short name of each tool in a namespace, by its name for providers."""
        return {name: declared_name for declared_name, name in self._names.items()}


def parse_tools(
    declared: list[tuple[str, wire.Tool]],
) -> tuple[tuple[Tool, ...], ToolNames, tuple[str, ...]]:
    """Return the tools that the caller runs, their names, and the names of ignored fields.

    `declared` has each tool and the path of its type. Raises RequestError for an unsupported tool
    if the answer would be wrong without it.
    """
    names = ToolNames(
        [
            tool.name
            for _, tool in declared
            if isinstance(tool, wire.FunctionTool | wire.CustomTextTool)
        ]
    )
    tools: dict[str, Tool] = {}
    ignored: list[str] = []
    for path, tool in declared:
        match tool:
            case wire.FunctionTool() | wire.CustomTextTool():
                tools[tool.name] = _tool(tool, tool.name)
            case wire.NamespaceTool():
                for nested in tool.tools:
                    name = names.name_of(nested.name, tool.name)
                    tools[name] = _tool(nested, name)
            case ServerToolType():
                if _is_offline(tool):
                    ignored.append(f"tools[]:{tool.type}")
                ignored += _unknown_options(tool)
            case wire.HostedTool(type=type_):
                if type_ in wire.REFUSED_TOOLS:
                    raise field_refusal(path, f"must not be '{type_}', which is not supported")
                ignored.append(f"tools[]:{type_}")
            case _:
                assert_never(tool)
    return tuple(tools.values()), names, tuple(ignored)


def _tool(tool: wire.FunctionTool | wire.CustomTextTool, name: str) -> Tool:
    match tool:
        case wire.FunctionTool():
            return Tool(
                name=name,
                description=tool.description,
                parameters=tool.parameters or {},
                strict=tool.strict,
                native=unknown_of(tool),
            )
        case wire.CustomTextTool():
            return Tool(
                name=name,
                description=tool.description,
                text=_text_input(tool),
                native=unknown_of(tool),
            )
        case _:
            assert_never(tool)


def _text_input(tool: wire.CustomTextTool) -> TextInput:
    match tool.format:
        case wire.GrammarText(syntax=syntax, definition=definition):
            return TextInput(grammar=Grammar(syntax=syntax, definition=definition))
        case AnyText() | None:
            return TextInput()
        case _:
            assert_never(tool.format)


class CallableTools(Struct, frozen=True, kw_only=True):
    """The tools that a model may call: the caller's own tools, and server tools."""

    own: tuple[Tool, ...] = ()
    server: tuple[ServerTool, ...] = ()


def parse_tool_choice(
    choice: wire.ToolChoice | None, tools: CallableTools, names: ToolNames
) -> tuple[CallableTools, ToolChoice | None]:
    """Return the tools that may be called, and the tool choice."""
    match choice:
        case None:
            return tools, None
        case wire.AllowedTools(mode=mode):
            allowed_names = set(_allowed(choice, tools, names))
            allowed = CallableTools(
                own=tuple(tool for tool in tools.own if tool.name in allowed_names),
                server=tuple(tool for tool in tools.server if tool.id in allowed_names),
            )
            return allowed, _rule(mode, allowed, "tool_choice.mode")
        case wire.ChosenTool():
            name = _chosen(choice, tools, names, "tool_choice")
            return tools, ToolChoice(mode="named", name=name)
        case "auto" | "none" | "required":
            return tools, _rule(choice, tools, "tool_choice")
        case _:
            assert_never(choice)


def _rule(mode: str, tools: CallableTools, path: str) -> ToolChoice | None:
    if tools.own or tools.server:
        return ToolChoice(mode=mode)  # type: ignore[arg-type]
    if mode == "required":
        raise field_refusal(path, "must not be 'required' without a supported tool")
    return None


def _allowed(choice: wire.AllowedTools, tools: CallableTools, names: ToolNames) -> Iterator[str]:
    for number, tool in enumerate(choice.tools):
        if tool.type in ("function", "custom") or _server_tool(tool, tools) is not None:
            yield _chosen(tool, tools, names, f"tool_choice.tools[{number}]")


def _chosen(chosen: wire.ChosenTool, tools: CallableTools, names: ToolNames, path: str) -> str:
    server_tool = _server_tool(chosen, tools)
    if server_tool is not None:
        return server_tool
    if chosen.type not in ("function", "custom"):
        raise field_refusal(
            f"{path}.type",
            f"must be 'function' or 'custom', because '{chosen.type}' is not available",
        )
    name = names.name_of(chosen.name or "", chosen.namespace)
    if all(tool.name != name for tool in tools.own):
        raise field_refusal(f"{path}.name", "must be the name of one of `tools`")
    return name


def _server_tool(chosen: wire.ChosenTool, tools: CallableTools) -> str | None:
    """Return the server tool that a choice names by type; None for any other choice."""
    id_ = tool_of_type(chosen.type)
    return id_ if any(tool.id == id_ for tool in tools.server) else None


def parse_response_tools(
    declared: Iterable[tuple[str, ServerToolType]], *, uses_max: int | None
) -> tuple[ServerTool, ...]:
    """Return the server tools, each limited to `uses_max` uses.

    `declared` has each tool and the path of its type. Raises RequestError for a repeated tool.
    """
    tools = require_each_once(
        _declared_server_tool(path, tool, id_)
        for path, tool in declared
        if not _is_offline(tool) and (id_ := tool_of_type(tool.type)) is not None
    )
    if uses_max is None:
        return tools
    return tuple(
        replace(tool, uses_max=min(uses_max, tool.uses_max or uses_max))
        for tool in tools
        if uses_max > 0
    )


def parse_response_reading(
    declared: Iterable[tuple[str, ServerToolType]],
) -> DocumentOptions | None:
    """Return the options for reading documents; raise RequestError if there are several."""
    return require_one_reading(
        [
            DocumentOptions(engine=tool.engine, pages_max=tool.pages_max, field=path)
            for path, tool in declared
            if tool.type == "pdf"
        ]
    )


def _is_offline(tool: ServerToolType) -> bool:
    """Return True if a search must not access the web; the gateway's engines cannot do that."""
    return tool.external_web_access is False


def _declared_server_tool(path: str, tool: ServerToolType, id_: ServerToolId) -> ServerTool:
    filters = tool.filters or SearchFilters()
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


def _unknown_options(tool: ServerToolType) -> Iterator[str]:
    """Yield the names of options without effect."""
    yield from extra_fields(tool, "tools[].")
    yield from extra_fields(tool.filters, "tools[].filters.")
