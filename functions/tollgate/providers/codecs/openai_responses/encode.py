"""Encodes generation requests in OpenAI's Responses format."""

from typing import Final, assert_never

from tollgate.core.json_value import JsonValue
from tollgate.core.request import (
    GenerationRequest,
    JsonOutput,
    NativeOptions,
    OutputFormat,
    ReasoningOptions,
    SchemaOutput,
    TextInput,
    Tool,
    ToolChoice,
)
from tollgate.core.server_tools import ServerTool
from tollgate.providers.codecs.openai_responses.compaction import (
    encode_compaction,
    is_compacted_by,
    without_task,
)
from tollgate.providers.codecs.openai_responses.items import items
from tollgate.providers.ports.base import Target, WireRequest
from tollgate.providers.ports.parameters import stated_parameters, unsupported
from tollgate.providers.ports.wire_format import WireFormat
from tollgate.providers.shared.efforts import effort_wanted, nearest_effort, wants_thoughts
from tollgate.providers.shared.emulation import Wrapping, replace_guided, use_output_tool
from tollgate.providers.shared.native_search import user_location
from tollgate.providers.shared.openai_writing import ANY_OBJECT, path_of
from tollgate.providers.shared.own_format import OwnFormat, own_format
from tollgate.providers.shared.readable import keep_readable
from tollgate.providers.shared.strict_schema import close_schema

_WIRE_FORMAT: Final = "openai_responses"
_SUMMARY: Final = "reasoning.summary"
_PATH: Final = "/responses"
_OUTPUT_TOKENS_MIN: Final = 16


def encode(request: GenerationRequest, target: Target, format_: WireFormat) -> WireRequest:
    """Return the request for `POST {base_url}/responses`, always streamed and never stored, or
    for the provider's own compaction.

    Raises RequestError for content that this format can never accept.
    """
    is_compacted = is_compacted_by(target, request)
    request = without_task(request) if is_compacted else request
    request, unreadable = keep_readable(request, format_.readership_of(target))
    request, wrapping = replace_guided(request)
    if isinstance(request.output_format, SchemaOutput) and not target.enforces_schemas:
        request = use_output_tool(request)
        wrapping = Wrapping(tool=True, choice=wrapping.choice)
    reasoning, changed = _reasoning(request.reasoning, target)
    parameters = stated_parameters(request)
    own = own_format(request.native, _WIRE_FORMAT, target)
    # `include` requests log probabilities, so `logprobs` is not a field of the body.
    fields = format_.parameters.difference(target.dialect.refuses, ("logprobs",))
    body: dict[str, JsonValue] = {
        "model": target.upstream_model,
        "input": items(request.messages, target, own),
        "stream": True,
        "store": False,
        **_included(request, target),
        **_limit(request, target),
        **_tools(request, own),
        **_output_format(request.output_format),
        **{name: value for name, value in parameters.items() if name in fields},
        **reasoning,
    }
    native_fields = own_fields(request.native, target)
    add_fields(body, native_fields)
    body = own.add_to_body(body)
    sent = body.keys() | _sent_otherwise(target) | native_fields.keys() | own.sent_names(body)
    wire = WireRequest(
        path=path_of(target, _PATH),
        body=body,
        adapted=(
            *unsupported(request, sent, parameters),
            *_raised(request),
            *changed,
        ),
        unreadable=unreadable,
        wrapping=wrapping,
    )
    return encode_compaction(wire) if is_compacted else wire


def _included(request: GenerationRequest, target: Target) -> dict[str, JsonValue]:
    """Return `include`, with encrypted reasoning, because the provider stores nothing."""
    include: list[JsonValue] = []
    if "reasoning" in target.supports:
        include.append("reasoning.encrypted_content")
    if request.sampling.logprobs and "logprobs" not in target.dialect.refuses:
        include.append("message.output_text.logprobs")
    return {"include": include} if include else {}


def _limit(request: GenerationRequest, target: Target) -> dict[str, JsonValue]:
    limit = target.limited(request.output_tokens_max)
    return {} if limit is None else {"max_output_tokens": max(limit, _OUTPUT_TOKENS_MIN)}


def _sent_otherwise(target: Target) -> set[str]:
    """Return the names of the options that the Responses format names differently."""
    return {"image_url.detail", "logprobs", "tools.strict"} - {*target.dialect.refuses}


def _raised(request: GenerationRequest) -> tuple[str, ...]:
    limit = request.output_tokens_max
    return ("max_tokens",) if limit is not None and limit < _OUTPUT_TOKENS_MIN else ()


def _reasoning(
    options: ReasoningOptions | None, target: Target
) -> tuple[dict[str, JsonValue], tuple[str, ...]]:
    thinks = None if options is None else wants_thoughts(options)
    if options is None or thinks is None:
        return {}, ()
    if "reasoning" not in target.supports:
        return {}, ("reasoning",) if thinks else ()
    effort = effort_wanted(options)
    nearest = None if effort is None else nearest_effort(effort, target.dialect.efforts)
    reasoning: dict[str, JsonValue] = {} if nearest is None else {"effort": nearest}
    if thinks and target.dialect.reasoning_summaries and not options.exclude:
        reasoning["summary"] = "auto"
    exact = nearest == effort and options.tokens_max is None
    return {"reasoning": reasoning} if reasoning else {}, () if exact else ("reasoning",)


def _tools(request: GenerationRequest, own: OwnFormat) -> dict[str, JsonValue]:
    if not (request.tools or request.server_tools):
        return {}
    tools: list[JsonValue] = [own.add(_tool(tool), tool.native) for tool in request.tools]
    fields: dict[str, JsonValue] = {"tools": tools}
    for search in request.server_tools:
        tools.append(_own_search(search))
        if search.uses_max is not None:
            fields["max_tool_calls"] = search.uses_max
    if request.tool_choice is not None:
        fields["tool_choice"] = _tool_choice(request, request.tool_choice)
    return fields


def _own_search(tool: ServerTool) -> JsonValue:
    """Return OpenAI's web search tool.

    https://platform.openai.com/docs/guides/tools-web-search (2026-11-22); the field
    `max_tool_calls` limits the calls of all built-in tools in a request.
    """
    search: dict[str, JsonValue] = {"type": "web_search", **user_location(tool)}
    if tool.allowed_domains:
        search["filters"] = {"allowed_domains": [*tool.allowed_domains]}
    return search


def _tool(tool: Tool) -> dict[str, JsonValue]:
    if tool.text is not None:
        return _text_tool(tool, tool.text)
    parameters = tool.parameters or ANY_OBJECT
    encoded: dict[str, JsonValue] = {
        "type": "function",
        "name": tool.name,
        "parameters": close_schema(parameters) if tool.strict else dict(parameters),
        # Always sent, because the default is true here and false in chat completions.
        "strict": bool(tool.strict),
    }
    if tool.description is not None:
        encoded["description"] = tool.description
    return encoded


def _text_tool(tool: Tool, text: TextInput) -> dict[str, JsonValue]:
    """Return a tool whose input is free text.

    https://platform.openai.com/docs/guides/function-calling (custom tools, seen 2026-11-21)
    """
    encoded: dict[str, JsonValue] = {"type": "custom", "name": tool.name}
    if tool.description is not None:
        encoded["description"] = tool.description
    if (grammar := text.grammar) is not None:
        encoded["format"] = {
            "type": "grammar",
            "syntax": grammar.syntax,
            "definition": grammar.definition,
        }
    return encoded


def _tool_choice(request: GenerationRequest, choice: ToolChoice) -> JsonValue:
    if choice.mode != "named":
        return choice.mode
    is_text = any(tool.name == choice.name and tool.text is not None for tool in request.tools)
    return {"type": "custom" if is_text else "function", "name": choice.name}


def _output_format(output: OutputFormat | None) -> dict[str, JsonValue]:
    match output:
        case None:
            return {}
        case JsonOutput():
            return {"text": {"format": {"type": "json_object"}}}
        case SchemaOutput():
            form: dict[str, JsonValue] = {
                "type": "json_schema",
                "name": output.name,
                "schema": close_schema(output.schema) if output.strict else dict(output.schema),
                "strict": bool(output.strict),
            }
            if output.description is not None:
                form["description"] = output.description
            return {"text": {"format": form}}
        case _:
            assert_never(output)


def own_fields(native: NativeOptions | None, target: Target) -> dict[str, JsonValue]:
    """Return the native options that the server accepts, keyed by the path of the field."""
    if native is None or native.wire_format != _WIRE_FORMAT:
        return {}
    return {name: value for name, value in native.fields.items() if _is_taken(name, target)}


def add_fields(body: dict[str, JsonValue], fields: dict[str, JsonValue]) -> None:
    """Set each field in a body at its path, such as `store` or `reasoning.summary`."""
    for path, value in fields.items():
        parent, _, name = path.rpartition(".")
        if not parent:
            body[name] = value
            continue
        parent_fields = body.get(parent)
        body[parent] = {**(parent_fields if isinstance(parent_fields, dict) else {}), name: value}


def _is_taken(name: str, target: Target) -> bool:
    if name != _SUMMARY:
        return True
    # OpenAI offers summaries to verified organisations only.
    return "reasoning" in target.supports and target.dialect.reasoning_summaries
