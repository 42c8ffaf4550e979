"""Parses Messages requests from bytes into a `GenerationRequest`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, assert_never

from tollgate.core.content import ServerToolId
from tollgate.core.documents.reading import DocumentOptions
from tollgate.core.request import (
    GenerationRequest,
    NativeOptions,
    OutputFormat,
    ReasoningOptions,
    Sampling,
    SchemaOutput,
    Tool,
    ToolChoice,
)
from tollgate.core.server_tools import ServerTool
from tollgate.core.unknown_fields import refers_to_stored, unknown_tree
from tollgate.ingress.base import NO_HEADERS, ParsedCall
from tollgate.ingress.messages.clearing import read_clearing
from tollgate.ingress.messages.compaction import (
    MANAGEMENT,
    WIRE_FORMAT,
    drop_compacted,
    watch_edits,
    with_messages,
)
from tollgate.ingress.messages.turns import parse_turns
from tollgate.ingress.messages.wire import blocks
from tollgate.ingress.messages.wire import request as wire
from tollgate.ingress.messages.wire.server_tool_models import PDF, ServerToolType, tool_of_type
from tollgate.ingress.shared.fields import (
    UnknownNames,
    extra_fields,
    name_unknown,
    parse_preferences,
    parse_preset,
    printable_names,
    unknown_preferences,
)
from tollgate.ingress.shared.held_fields import HELD_OF_MESSAGES
from tollgate.ingress.shared.media import field_refusal, parse_cache_mark
from tollgate.ingress.shared.server_tool_options import (
    parse_domains,
    parse_location,
    require_each_once,
    require_one_reading,
)
from tollgate.ingress.shared.wire.request_model import Wire
from tollgate.ingress.validation import validate_body

_BETAS: Final = "anthropic-beta"
_BETAS_MAX: Final = 64
# Claude Code sends a session id, which keeps all requests of a session on one endpoint and its
# prompt cache.
_SESSION: Final = "x-claude-code-session-id"
_OUTPUT_NAME: Final = "answer"
_HINTS: Final = {"thread": "Conversations are not stored: send all messages of each turn."}
# The fields of a tool that all formats have.
_TOOL_FIELDS: Final = {
    "cache_control",
    "description",
    "input_schema",
    "name",
    "strict",
    "type",
}
_NOT_FORWARDED: Final = HELD_OF_MESSAGES | {"provider", "messages"}
# The blocks whose unknown fields providers get. Other blocks become text, or reasoning as it was
# signed.
_CARRIERS: Final = (
    blocks.DocumentBlock,
    blocks.ImageBlock,
    blocks.OwnBlock,
    blocks.TextBlock,
    blocks.ToolResultBlock,
    blocks.ToolUseBlock,
)
_BLOCK: Final = "messages[].content[]."


def parse_request(body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedCall:
    """Parse a request; raise RequestError with the field at fault."""
    params = validate_body(wire.MessagesRequest, body, _HINTS)
    unknown = name_unknown(_carriers(params), _NOT_FORWARDED)
    request = _request(params, unknown, params.max_tokens, headers, size_bytes=len(body))
    return ParsedCall(
        request=request,
        window=watch_edits(params.context_management, request),
        edits=read_clearing(params.context_management),
        stream=bool(params.stream),
        ignored=printable_names(_ignored(params, unknown)),
    )


def parse_count_request(body: bytes, headers: Mapping[str, str]) -> GenerationRequest:
    """Parse a token-counting request; raise RequestError with the field at fault."""
    params = validate_body(wire.CountTokensRequest, body, _HINTS)
    unknown = name_unknown(_carriers(params), _NOT_FORWARDED)
    return _request(params, unknown, params.max_tokens, headers, size_bytes=len(body))


def _request(
    params: wire.PromptFields,
    unknown: UnknownNames,
    output_tokens_max: int | None,
    headers: Mapping[str, str],
    *,
    size_bytes: int,
) -> GenerationRequest:
    tools = tuple(_tool(tool) for tool in params.tools or () if isinstance(tool, wire.CustomTool))
    native = _native(params, unknown, headers)
    server_tools = _server_tools(params.tools or ())
    has_tools = bool(tools or server_tools or (native and native.tools))
    preset = parse_preset(params)
    messages = parse_turns(params)
    request = GenerationRequest(
        model=preset.model,
        preset=preset.slug,
        preset_variables=preset.variables,
        messages=messages,
        tools=tools,
        server_tools=server_tools,
        documents=_reading(params.tools or ()),
        tool_choice=_tool_choice(params, has_tools=has_tools),
        parallel_tool_calls=_parallel(params, has_tools=has_tools),
        output_tokens_max=output_tokens_max,
        sampling=_sampling(params),
        output_format=_output_format(params.output_config),
        reasoning=_reasoning(params),
        native=native,
        service_tier=_service_tier(params),
        user=params.metadata.user_id if params.metadata else None,
        preferences=parse_preferences(params, session=headers.get(_SESSION, "")),
        size_bytes=size_bytes,
    )
    left = drop_compacted(messages)
    return request if left is messages else with_messages(request, left)


def _tool(tool: wire.CustomTool) -> Tool:
    return Tool(
        name=tool.name,
        description=tool.description,
        parameters=tool.input_schema,
        strict=tool.strict,
        cache=parse_cache_mark(tool.cache_control),
    )


def _tool_choice(params: wire.PromptFields, *, has_tools: bool) -> ToolChoice | None:
    choice = params.tool_choice
    if choice is None:
        return None
    match choice.type:
        case "auto" | "none":
            return ToolChoice(mode=choice.type) if has_tools else None
        case "any":
            if not has_tools:
                raise field_refusal("tool_choice.type", "must not be 'any' without `tools`")
            return ToolChoice(mode="required")
        case "tool":
            if choice.name not in _names(params):
                raise field_refusal("tool_choice.name", "must be the name of one of `tools`")
            return ToolChoice(mode="named", name=choice.name)
        case unknown:
            assert_never(unknown)


def _names(params: wire.PromptFields) -> set[str]:
    names = (
        tool_of_type(tool.type) if isinstance(tool, ServerToolType) else tool.name
        for tool in params.tools or ()
    )
    return {name for name in names if name is not None}


def _parallel(params: wire.PromptFields, *, has_tools: bool) -> bool | None:
    disabled = params.tool_choice is not None and params.tool_choice.disable_parallel_tool_use
    return False if disabled and has_tools else None


def _sampling(params: wire.PromptFields) -> Sampling:
    return Sampling(
        temperature=params.temperature,
        top_p=params.top_p,
        top_k=params.top_k,
        stop=tuple(params.stop_sequences or ()),
    )


def _output_format(config: wire.OutputConfig | None) -> OutputFormat | None:
    if config is None or config.format is None:
        return None
    return SchemaOutput(name=_OUTPUT_NAME, schema=config.format.json_schema, strict=True)


def _reasoning(params: wire.PromptFields) -> ReasoningOptions | None:
    """Return the reasoning options from `thinking` and `output_config.effort`.

    Without `thinking`, an effort applies to the whole answer and does not enable thinking:
    https://platform.claude.com/docs/en/build-with-claude/effort (seen 2026-11-22).
    """
    effort = params.output_config.effort if params.output_config else None
    thinking = params.thinking
    if thinking is None:
        if effort is None:
            return None
        return ReasoningOptions(effort=effort, effort_alone=True, display_open=True)
    hidden, is_open = thinking.display == "omitted", thinking.display is None
    match thinking.type:
        case "disabled" | "between_tools":
            return ReasoningOptions(enabled=False, effort=effort, effort_alone=effort is not None)
        case "adaptive":
            enabled = True if effort is None else None
            return ReasoningOptions(
                enabled=enabled, effort=effort, exclude=hidden, display_open=is_open
            )
        case "enabled":
            if thinking.budget_tokens is None:
                raise field_refusal("thinking.budget_tokens", "is required")
            return ReasoningOptions(
                tokens_max=thinking.budget_tokens,
                effort=effort,
                exclude=hidden,
                display_open=is_open,
            )
        case unknown:
            assert_never(unknown)


def _service_tier(params: wire.PromptFields) -> str | None:
    return "default" if params.service_tier == "standard_only" else params.service_tier


def _native(
    params: wire.PromptFields, unknown: UnknownNames, headers: Mapping[str, str]
) -> NativeOptions | None:
    """Return the options that exist only in Anthropic's format; None if the request uses none."""
    fields: dict[str, Any] = {}
    if params.context_management is not None:
        fields[MANAGEMENT] = params.context_management
    if params.output_config is not None and params.output_config.task_budget is not None:
        fields["output_config.task_budget"] = params.output_config.task_budget
    betas_sent = (beta.strip() for beta in headers.get(_BETAS, "").split(","))
    betas = tuple(dict.fromkeys(beta for beta in betas_sent if beta and beta.isprintable()))
    if len(betas) > _BETAS_MAX:
        raise field_refusal(_BETAS, f"must have at most {_BETAS_MAX} names")
    tools = tuple(
        tool.model_dump() for tool in params.tools or () if isinstance(tool, wire.TypedTool)
    )
    tool_fields = {
        tool.name: own_fields
        for tool in params.tools or ()
        if isinstance(tool, wire.CustomTool) and (own_fields := _own_fields(tool))
    }
    if not (fields or betas or tools or tool_fields or unknown.forwarded):
        return None
    return NativeOptions(
        wire_format=WIRE_FORMAT,
        fields=fields,
        betas=betas,
        tools=tools,
        tool_fields=tool_fields,
        unknown=unknown_tree(params, _NOT_FORWARDED),
        unknown_names=unknown.forwarded,
    )


def _own_fields(tool: wire.CustomTool) -> dict[str, Any]:
    """Return the fields of a tool that exist only in Anthropic's format."""
    unknown = tool.model_extra or {}
    return {
        name: value
        for name, value in tool.model_dump(exclude=_TOOL_FIELDS, exclude_none=True).items()
        if name not in unknown or not refers_to_stored(name, value)
    }


def _ignored(params: wire.PromptFields, unknown: UnknownNames) -> Iterator[str]:
    """Yield the names of fields that no provider gets."""
    yield from unknown.kept
    yield from unknown_preferences(params)
    for tool in params.tools or ():
        if isinstance(tool, ServerToolType):
            yield from extra_fields(tool, "tools[].")
    for message in params.messages:
        for block in () if isinstance(message.content, str) else message.content:
            if isinstance(block, blocks.DocumentBlock | blocks.SearchResultBlock):
                yield from (f"{_BLOCK}citations",) if block.citations else ()
            if not isinstance(block, _CARRIERS):
                yield from extra_fields(block, _BLOCK)


def _carriers(params: wire.PromptFields) -> Iterator[tuple[Wire | None, str]]:
    """Yield the models whose unknown fields providers of Anthropic's format get, with paths."""
    yield params, ""
    yield params.metadata, "metadata."
    yield params.output_config, "output_config."
    yield params.thinking, "thinking."
    yield params.tool_choice, "tool_choice."
    yield from (
        (tool, "tools[].") for tool in params.tools or () if isinstance(tool, wire.CustomTool)
    )
    for message in params.messages:
        yield message, "messages[]."
        for block in () if isinstance(message.content, str) else message.content:
            if isinstance(block, _CARRIERS) and not isinstance(block, blocks.OwnBlock):
                yield block, _BLOCK


def _server_tools(tools: Iterable[object]) -> tuple[ServerTool, ...]:
    """Return the server tools; raise RequestError with the field at fault."""
    return require_each_once(
        _server_tool(tool, id_, f"tools[{number}]")
        for number, tool in enumerate(tools)
        if isinstance(tool, ServerToolType) and (id_ := tool_of_type(tool.type)) is not None
    )


def _reading(tools: Iterable[object]) -> DocumentOptions | None:
    """Return the options for reading documents; raise RequestError if there are several."""
    return require_one_reading(
        [
            DocumentOptions(
                engine=tool.engine, pages_max=tool.pages_max, field=f"tools[{number}].type"
            )
            for number, tool in enumerate(tools)
            if isinstance(tool, ServerToolType) and tool.type == PDF
        ]
    )


def _server_tool(tool: ServerToolType, id_: ServerToolId, path: str) -> ServerTool:
    if tool.name not in (None, id_):
        raise field_refusal(f"{path}.name", f"must be '{id_}'")
    if tool.allowed_domains and tool.blocked_domains:
        raise field_refusal(f"{path}.blocked_domains", "must not be combined with allowed_domains")
    return ServerTool(
        id=id_,
        uses_max=tool.max_uses,
        results_max=tool.max_results,
        allowed_domains=parse_domains(tool.allowed_domains),
        blocked_domains=parse_domains(tool.blocked_domains),
        location=parse_location(tool.user_location),
        field=f"{path}.type",
    )
