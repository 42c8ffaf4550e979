"""The fields for tools, for the tool choice, and for the format of the answer."""

from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from tollgate.core.json_value import JsonValue
from tollgate.core.request import (
    GenerationRequest,
    NativeOptions,
    OutputFormat,
    SchemaOutput,
    Tool,
    ToolChoice,
)
from tollgate.core.server_tools import ServerTool
from tollgate.providers.codecs.anthropic.json_schema import close_enforceable
from tollgate.providers.codecs.anthropic.turns import Block, add_mark
from tollgate.providers.ports.base import Target
from tollgate.providers.shared.emulation import (
    OUTPUT_TOOL,
    Wrapping,
    replace_guided,
    use_output_tool,
)
from tollgate.providers.shared.native_search import user_location

_AUTO = ToolChoice(mode="auto")


class Tooling(Struct):
    """The tools of one request."""

    wrapping: Wrapping
    """The emulation that the decoder must undo in the answer."""
    tools: list[Block] = field(default_factory=list)
    """The value of the field `tools`."""
    choice: Block = field(default_factory=dict)
    """The value of the field `tool_choice`."""
    output_format: Block = field(default_factory=dict)
    """The value of the field `output_config.format`."""
    adapted: list[str] = field(default_factory=list)
    """The names of the caller's options that the request changes or leaves out."""

    @property
    def forces_a_call(self) -> bool:
        return self.choice.get("type") in {"any", "tool"}


def tooling(
    request: GenerationRequest, target: Target, called: Sequence[str], native: NativeOptions
) -> Tooling:
    """Return the tools that the caller offers or that the history used, and the format of the
    answer.

    `native` has the caller's tools of Anthropic's own types, and extra fields of other tools.
    """
    plain, wrapping = replace_guided(request)
    schema = _native(plain.output_format, target)
    offered = Tooling(wrapping)
    if schema is not None:
        offered.output_format = {"type": "json_schema", "schema": schema}
        plain = replace(plain, output_format=None)
    elif plain.output_format is not None:
        plain = use_output_tool(plain)
        is_offered = any(tool.name == OUTPUT_TOOL for tool in plain.tools)
        offered.wrapping = replace(wrapping, tool=is_offered)
    claude = target.dialect.claude
    may_force = claude.forced_calls_while_thinking or claude.thinking_off != "never"
    choice = plain.tool_choice
    if choice is not None and choice.mode in ("required", "named") and not may_force:
        offered.adapted.append("response_format" if offered.wrapping.tool else "tool_choice")
        choice = _AUTO
    if plain.tools or native.tools or plain.server_tools:
        offered.tools = [
            {**_tool(tool, target, offered.adapted), **native.tool_fields.get(tool.name, {})}
            for tool in plain.tools
        ]
        offered.tools += [{**tool} for tool in native.tools]
        offered.tools += map(_own_search, plain.server_tools)
        offered.choice = _choice(choice, plain.parallel_tool_calls)
    elif called:
        # Anthropic refuses calls in the history of a request without tools. The tools are declared
        # for this reason only, and the choice `none` prevents new calls.
        offered.tools = [_tool(Tool(name=name), target, offered.adapted) for name in called]
        offered.choice = {"type": "none"}
    return offered


def _native(output: OutputFormat | None, target: Target) -> dict[str, JsonValue] | None:
    """Return the schema for Anthropic to enforce; None if the gateway must emulate the format."""
    if not isinstance(output, SchemaOutput) or not target.enforces_schemas:
        return None
    return close_enforceable(output.schema)


def _tool(tool: Tool, target: Target, adapted: list[str]) -> Block:
    schema: dict[str, JsonValue] = {"type": "object", **tool.parameters}
    block: Block = {"name": tool.name, "input_schema": schema}
    if tool.description:
        block["description"] = tool.description
    if tool.strict:
        closed = close_enforceable(schema) if target.enforces_schemas else None
        if closed is not None:
            block["input_schema"], block["strict"] = closed, True
        elif tool.name != OUTPUT_TOOL and "tools.strict" not in adapted:
            adapted.append("tools.strict")
    return add_mark(block, tool.cache)


def _own_search(tool: ServerTool) -> Block:
    """Return Anthropic's search tool (platform.claude.com/docs, "Web search tool", 2026-11-22)."""
    search: Block = {"type": "web_search_20250305", "name": "web_search", **user_location(tool)}
    if tool.uses_max is not None:
        search["max_uses"] = tool.uses_max
    if tool.allowed_domains:
        search["allowed_domains"] = [*tool.allowed_domains]
    if tool.blocked_domains:
        search["blocked_domains"] = [*tool.blocked_domains]
    return search


def _choice(choice: ToolChoice | None, parallel: bool | None) -> Block:
    if choice is None and parallel is not False:
        return {}
    encoded: Block
    match choice or _AUTO:
        case ToolChoice(mode="none"):
            return {"type": "none"}
        case ToolChoice(mode="named", name=name):
            encoded = {"type": "tool", "name": name}
        case ToolChoice(mode="required"):
            encoded = {"type": "any"}
        case _:
            encoded = {"type": "auto"}
    if parallel is False:
        encoded["disable_parallel_tool_use"] = True
    return encoded
