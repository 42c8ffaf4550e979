"""Parses Responses requests from bytes into a `GenerationRequest`."""

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any, Final, assert_never

from msgspec.structs import replace

from tollgate.core.json_value import JsonValue
from tollgate.core.request import (
    GenerationRequest,
    JsonOutput,
    NativeOptions,
    OutputFormat,
    ReasoningOptions,
    Sampling,
    SchemaOutput,
)
from tollgate.core.server_tools import ServerTool
from tollgate.ingress.base import NO_HEADERS, ParsedCall, Seal
from tollgate.ingress.responses.compaction import (
    begin_compaction,
    compaction_read_by,
    open_input,
    watch_window,
)
from tollgate.ingress.responses.items import parse_input, read_run
from tollgate.ingress.responses.repeated import repeated_fields
from tollgate.ingress.responses.stored import StoredTurns, TakenItems, take_items
from tollgate.ingress.responses.tools import (
    CallableTools,
    parse_response_reading,
    parse_response_tools,
    parse_tool_choice,
    parse_tools,
)
from tollgate.ingress.responses.unknown import (
    fields_of_body,
    fields_within,
    name_fields,
    unread_of_item,
)
from tollgate.ingress.responses.wire import input_items, tool_models
from tollgate.ingress.responses.wire import response_request as wire
from tollgate.ingress.responses.wire.server_tool_models import ServerToolType, tool_of_type
from tollgate.ingress.shared.fields import (
    UnknownNames,
    parse_guided,
    parse_preferences,
    parse_preset,
    parse_sampling,
    printable_names,
    unknown_preferences,
)
from tollgate.ingress.shared.record_request import ask_for_record
from tollgate.ingress.validation import decode_object, validate_object

_WIRE_FORMAT: Final = "openai_responses"
# Codex sends a session id, which keeps all requests of a session on one endpoint and its prompt
# cache.
_SESSION: Final = "session-id"
_ENCRYPTED: Final = "reasoning.encrypted_content"
_LOG_PROBS: Final = "message.output_text.logprobs"
# Answers always contain sources and encrypted reasoning, so these `include` values are supported.
_SOURCES: Final = "web_search_call.action.sources"
_HINTS: Final = {
    "conversation": "Conversations are not stored: send `previous_response_id`, or the earlier "
    "items in `input`.",
    "prompt": "Templates are not stored: send `instructions` and `input`.",
}


def parse_response_request(body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedCall:
    """Parse a request without reading stored responses.

    Raises RequestError with the field at fault, and for a request that needs a stored response.
    """
    return parse_response_object(decode_object(body), headers, size_bytes=len(body))


def parse_response_count(body: bytes, headers: Mapping[str, str]) -> GenerationRequest:
    """Parse a token-counting request; raise RequestError with the field at fault."""
    return parse_response_request(body, headers).request


def parse_response_object(
    body: Mapping[str, JsonValue],
    headers: Mapping[str, str],
    *,
    size_bytes: int,
    turns: StoredTurns | None = None,
    seal: Seal | None = None,
) -> ParsedCall:
    """Parse a decoded request; raise RequestError with the field at fault.

    `size_bytes` is the size of the encoded body; `turns` and `seal` are None if they were not read.
    """
    params = validate_object(wire.ResponsesRequest, body, _HINTS)
    opened = open_input(take_items(params, body["input"], turns), seal)
    taken, compacting = opened.taken, begin_compaction(opened, seal)
    if compacting:  # The answer replaces the input, so later turns must not contain it again.
        taken = replace(taken, items=compacting.head, stored_form=())
    stores = turns is not None and params.store is not False
    declared = list(_declared(params, taken))
    all_tools, names, left_out = parse_tools(declared)
    run_by_us = [(path, tool) for path, tool in declared if isinstance(tool, ServerToolType)]
    server_tools = parse_response_tools(run_by_us, uses_max=params.max_tool_calls)
    offered = CallableTools(own=all_tools, server=server_tools)
    tools, choice = parse_tool_choice(params.tool_choice, offered, names)
    unknown = name_fields(params, taken.items, declared)
    preset = parse_preset(params)
    request = GenerationRequest(
        model=preset.model,
        preset=preset.slug,
        preset_variables=preset.variables,
        messages=parse_input(taken.items, params.instructions, names),
        tools=tools.own,
        server_tools=tools.server,
        documents=parse_response_reading(run_by_us),
        tool_choice=choice,
        parallel_tool_calls=params.parallel_tool_calls if tools.own or tools.server else None,
        output_tokens_max=params.max_output_tokens,
        sampling=_sampling(params),
        output_format=_output_format(params.text),
        reasoning=_reasoning(params.reasoning),
        guided=parse_guided(params),
        native=_native(params, unknown),
        compaction=compaction_read_by(opened.only_provider),
        prompt_cache_key=params.prompt_cache_key,
        service_tier=params.service_tier,
        user=params.user or params.safety_identifier,
        metadata=params.metadata or {},
        preferences=parse_preferences(params, session=headers.get(_SESSION, "")),
        size_bytes=size_bytes + taken.added_bytes,
    )
    return ParsedCall(
        request=ask_for_record(request) if compacting else request,
        compacts=compacting,
        window=watch_window(
            opened,
            seal,
            params.context_management,
            request=request,
            parse=partial(parse_input, instructions=params.instructions, names=names),
        ),
        stream=bool(params.stream),
        background=bool(params.background),
        ignored=printable_names(
            [*unknown.kept, *left_out, *_unread(params, taken, tools.server, stores=stores)]
        ),
        repeated=repeated_fields(params, [tool for _, tool in declared]),
        namespaces=names.namespaced,
        stored_input=taken.stored_form if stores else None,
        client_metadata=params.client_metadata or {},
    )


def _declared(
    params: wire.ResponsesRequest, taken: TakenItems
) -> Iterator[tuple[str, tool_models.Tool]]:
    """Yield all tools in the request and its input items, each preceded by its path."""
    for number, tool in enumerate(params.tools or ()):
        yield f"tools[{number}].type", tool
    for path, item in taken.items:
        if isinstance(item, input_items.AddedToolsItem):
            for number, tool in enumerate(item.tools):
                yield f"{path}.tools[{number}].type", tool


def _sampling(params: wire.ResponsesRequest) -> Sampling:
    wants_log_probs = bool(params.top_logprobs) or _LOG_PROBS in (params.include or ())
    return parse_sampling(
        params,
        logprobs=True if wants_log_probs else None,
        top_logprobs=params.top_logprobs or None,
    )


def _output_format(text: wire.TextOptions | None) -> OutputFormat | None:
    match text.format if text else None:
        case None | wire.PlainText():
            return None
        case wire.JsonText():
            return JsonOutput()
        case wire.SchemaText() as schema_text:
            return SchemaOutput(
                name=schema_text.name,
                schema=schema_text.json_schema,
                description=schema_text.description,
                strict=schema_text.strict,
            )
        case unknown:
            assert_never(unknown)


def _reasoning(reasoning: wire.ReasoningFields | None) -> ReasoningOptions | None:
    if reasoning is None or reasoning.effort is None:
        return None
    return ReasoningOptions(effort=reasoning.effort)


def _native(params: wire.ResponsesRequest, unknown: UnknownNames) -> NativeOptions | None:
    """Return the options that exist only in OpenAI's format; None if the request uses none."""
    fields: dict[str, Any] = {}
    if params.text is not None and params.text.verbosity is not None:
        fields["text.verbosity"] = params.text.verbosity
    reasoning = params.reasoning
    summary = reasoning.summary if reasoning else None
    # If an effort is set, all providers return summaries, so `auto` does not need a native option.
    is_usual = reasoning is not None and reasoning.effort is not None and summary == "auto"
    if summary not in (None, "none") and not is_usual:
        fields["reasoning.summary"] = summary
    if params.truncation == "auto":
        fields["truncation"] = "auto"
    if not (fields or unknown.forwarded):
        return None
    return NativeOptions(
        wire_format=_WIRE_FORMAT,
        fields=fields,
        unknown=fields_of_body(params),
        within=fields_within(params),
        unknown_names=unknown.forwarded,
    )


def _unread(
    params: wire.ResponsesRequest,
    taken: TakenItems,
    server_tools: Collection[ServerTool],
    *,
    stores: bool,
) -> Iterator[str]:
    run_here = [tool.id for tool in server_tools]
    yield from unknown_preferences(params)
    if params.max_tool_calls and len(run_here) > 1:
        # The limit is applied to each tool separately, so several tools together may exceed it.
        yield "max_tool_calls"
    if params.store and not stores:
        yield "store"
    for name in params.include or ():
        if name not in (_ENCRYPTED, _LOG_PROBS, _SOURCES):
            yield f"include:{name}"
    if isinstance(params.tool_choice, tool_models.AllowedTools):
        for tool in params.tool_choice.tools:
            if tool.type not in ("function", "custom") and tool_of_type(tool.type) not in run_here:
                yield f"tool_choice.tools[]:{tool.type}"
    for _ in taken.left_out:
        yield "input[]:item_reference"
    for _, item in taken.items:
        yield from _unread_of_item(item)


def _unread_of_item(item: input_items.Item) -> Iterator[str]:
    match item:
        case input_items.LeftOutItem():
            yield f"input[]:{item.type}"
        case input_items.SearchItem() | input_items.ToolRunItem():
            if read_run(item) is None:
                yield f"input[]:{item.type}"
        case _:
            yield from unread_of_item(item)
