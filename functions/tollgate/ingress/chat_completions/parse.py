"""Parses chat completion requests from bytes into a `GenerationRequest`."""

from typing import Final

from msgspec import Struct

from tollgate.core.documents.reading import DocumentOptions
from tollgate.core.request import GenerationRequest
from tollgate.core.server_tools import ServerTool
from tollgate.ingress.base import ParsedCall
from tollgate.ingress.chat_completions.file_annotations import parse_known_files
from tollgate.ingress.chat_completions.messages import parse_messages
from tollgate.ingress.chat_completions.options import (
    parse_log_probs,
    parse_output_format,
    parse_reasoning,
)
from tollgate.ingress.chat_completions.tools import (
    narrow_tools,
    parse_tool,
)
from tollgate.ingress.chat_completions.unknown import parse_unknown
from tollgate.ingress.chat_completions.wire import request as wire
from tollgate.ingress.shared.fields import (
    parse_guided,
    parse_preferences,
    parse_preset,
    parse_sampling,
    printable_names,
)
from tollgate.ingress.validation import validate_body

_HINTS: Final = {
    "functions": "Send them as `tools`.",
    "function_call": "Use `tool_choice` in a request and `tool_calls` in a message.",
}


def parse(body: bytes) -> ParsedCall:
    """Parse a request; raise RequestError with the field at fault."""
    chat = validate_body(wire.ChatFields, body, _HINTS)
    logprobs, top_logprobs = parse_log_probs(chat)
    switched_on = _switched_on(chat)
    tools, server_tools, tool_choice = narrow_tools(
        chat.tool_choice, tuple(parse_tool(tool) for tool in chat.tools or ()), switched_on.tools
    )
    known_files, known_bytes = parse_known_files(chat.messages)
    native, ignored = parse_unknown(chat)
    preset = parse_preset(chat)
    request = GenerationRequest(
        model=preset.model,
        preset=preset.slug,
        preset_variables=preset.variables,
        messages=parse_messages(chat.messages),
        tools=tools,
        tool_choice=tool_choice,
        # Some providers refuse `parallel_tool_calls` without tools.
        parallel_tool_calls=chat.parallel_tool_calls if tools or server_tools else None,
        output_tokens_max=_smaller(chat.max_tokens, chat.max_completion_tokens),
        sampling=parse_sampling(chat, logprobs=logprobs, top_logprobs=top_logprobs),
        output_format=parse_output_format(chat.response_format),
        reasoning=parse_reasoning(
            chat.reasoning_effort, chat.reasoning, included=chat.include_reasoning
        ),
        choices=chat.n or 1,
        server_tools=server_tools,
        documents=switched_on.documents,
        output=frozenset(chat.modalities or ("text",)),
        guided=parse_guided(chat),
        native=native,
        prompt_cache_key=chat.prompt_cache_key,
        service_tier=chat.service_tier,
        user=chat.user,
        metadata=chat.metadata or {},
        preferences=parse_preferences(chat),
        size_bytes=max(0, len(body) - known_bytes),
        known_files=known_files,
    )
    return ParsedCall(
        request=request,
        stream=bool(chat.stream),
        usage_on=chat.usage_on,
        episode_id=chat.episode_id,
        ignored=printable_names((*ignored, *switched_on.unread)),
    )


class _SwitchedOn(Struct, frozen=True, kw_only=True):
    """The server tools that a request enables, and the names of options that have no effect."""

    tools: tuple[ServerTool, ...] = ()
    documents: DocumentOptions | None = None
    unread: tuple[str, ...] = ()


def _switched_on(chat: wire.ChatFields) -> _SwitchedOn:
    if not chat.plugins and chat.web_search_options is None:
        return _SwitchedOn()
    # Imported on the first request that enables a server tool, to keep cold starts short.
    from tollgate.ingress.chat_completions import plugins

    fields = plugins.read_plugins(chat)
    return _SwitchedOn(
        tools=plugins.parse_plugins(fields, all_events=bool(chat.hi_tool_events)),
        documents=plugins.parse_reading(fields),
        unread=tuple(plugins.unknown_plugin_fields(fields)),
    )


def _smaller(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)
