"""Parses the tools and the tool choice of a chat completion request."""

from collections.abc import Collection
from typing import assert_never

from tollgate.core.request import Grammar, TextInput, Tool, ToolChoice
from tollgate.core.server_tools import ServerTool
from tollgate.ingress.chat_completions.wire import tools as wire
from tollgate.ingress.shared.media import field_refusal, parse_cache_mark
from tollgate.ingress.shared.wire.request_fields import AnyText
from tollgate.ingress.shared.wire.request_model import unknown_of


def parse_tool(tool: wire.ToolDefinition) -> Tool:
    """Return a tool as a core `Tool`."""
    cache = parse_cache_mark(tool.cache_control)
    match tool:
        case wire.FunctionTool(function=function):
            return Tool(
                name=function.name,
                description=function.description,
                parameters=function.parameters or {},
                strict=function.strict,
                cache=cache,
                native=unknown_of(tool),
            )
        case wire.CustomTool(custom=custom):
            text = _text_input(custom)
            return Tool(name=custom.name, description=custom.description, text=text, cache=cache)
        case _:
            assert_never(tool)


def _text_input(custom: wire.CustomDefinition) -> TextInput:
    match custom.format:
        case wire.GrammarText(grammar=grammar):
            return TextInput(grammar=Grammar(syntax=grammar.syntax, definition=grammar.definition))
        case AnyText() | None:
            return TextInput()
        case _:
            assert_never(custom.format)


def narrow_tools(
    choice: wire.ToolChoice | None,
    tools: tuple[Tool, ...],
    server_tools: tuple[ServerTool, ...],
) -> tuple[tuple[Tool, ...], tuple[ServerTool, ...], ToolChoice | None]:
    """Return the tools and server tools that may be called, and the tool choice.

    In a tool choice, server tools are written like functions.
    """
    functions = {tool.name for tool in tools if tool.text is None}
    functions |= {tool.id for tool in server_tools}
    customs = {tool.name for tool in tools if tool.text is not None}
    match choice:
        case None:
            return tools, server_tools, None
        case wire.FunctionChoice() | wire.CustomChoice():
            name = _chosen(choice, functions, customs, "tool_choice")
            return tools, server_tools, ToolChoice(mode="named", name=name)
        case wire.AllowedTools(allowed_tools=allowance):
            allowed = {
                _chosen(tool, functions, customs, f"tool_choice.allowed_tools.tools[{number}]")
                for number, tool in enumerate(allowance.tools)
            }
            own_tools = tuple(tool for tool in tools if tool.name in allowed)
            run_here = tuple(tool for tool in server_tools if tool.id in allowed)
            return own_tools, run_here, ToolChoice(mode=allowance.mode)
        case "required":
            if not (tools or server_tools):
                raise field_refusal("tool_choice", "must not be 'required' without `tools`")
            return tools, server_tools, ToolChoice(mode="required")
        case "auto" | "none":
            # Without tools, the choice has no effect, and some providers refuse it.
            rule = ToolChoice(mode=choice) if tools or server_tools else None
            return tools, server_tools, rule
        case _:
            assert_never(choice)


def _chosen(
    chosen: wire.FunctionChoice | wire.CustomChoice,
    functions: Collection[str],
    customs: Collection[str],
    path: str,
) -> str:
    """Return the name of the chosen tool; raise RequestError if the request has no such tool."""
    match chosen:
        case wire.FunctionChoice(function=wire.NamedTool(name=name)):
            is_known = name in functions
        case wire.CustomChoice(custom=wire.NamedTool(name=name)):
            is_known = name in customs
        case _:
            assert_never(chosen)
    if not is_known:
        raise field_refusal(
            f"{path}.{chosen.type}.name", f"must be the name of a {chosen.type} tool in `tools`"
        )
    return name
