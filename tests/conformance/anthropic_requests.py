"""Recorded requests of the Messages API in our words, and what of them may differ when sent again.

The reading is a test's: it knows what the recordings hold, and refuses the rest.
"""

import json
from collections.abc import Iterable
from typing import Any

from tests.conformance.recordings import Recording
from tollgate.core.content import (
    CacheMark,
    Document,
    Image,
    InlineMedia,
    MediaSource,
    MediaUrl,
    Provenance,
    Reasoning,
    Text,
    ToolCall,
)
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    Message,
    ReasoningOptions,
    Sampling,
    SystemMessage,
    Tool,
    ToolChoice,
    ToolMessage,
    UserMessage,
)
from tollgate.core.signers import ANTHROPIC_BLOCKS, CLAUDE
from tollgate.providers.ports.base import Target
from tollgate.providers.ports.dialect import ClaudeCarrier, ClaudeDialect, Dialect

CARRIERS: dict[str, ClaudeCarrier] = {
    "anthropic_messages": "anthropic",
    "anthropic_messages_stream": "anthropic",
    "vertex_anthropic": "vertex",
    "bedrock_invoke_stream": "bedrock",
}

# Reviewed differences between what a client sent and what we send for it.
# Where there is a slot for nothing but what is said: no vocabulary has these.
_LOST = frozenset({"citations", "is_error", "context"})
# Where the request goes and how it comes back is ours to say.
_OURS = frozenset({"model", "stream", "anthropic_version", "anthropic_beta"})
# Anthropic's automatic mark, which stands on no part; 2023-06-01 takes it, our vocabulary does not.
_AUTOMATIC = frozenset({"cache_control"})

_MODES = {"any": "required", "tool": "named", "auto": "auto", "none": "none"}


def target(recording: Recording) -> Target:
    """An endpoint that takes whatever the recorded model took."""
    sent = recording.sent
    thinks = (sent.get("thinking") or {}).get("type")
    dialect = Dialect(
        refuses=(),
        fetches_urls=("file", "image"),
        reasoning="claude_adaptive" if thinks == "adaptive" else "claude_budget",
        efforts=("low", "medium", "high", "xhigh", "max"),
        claude_carrier=CARRIERS[recording.path.parent.name],
        claude=ClaudeDialect(
            thinking_off="absent",
            temperature_and_top_p=True,
            prefill=True,
            system_turns=True,
            forced_calls_while_thinking=True,
        ),
    )
    return Target(
        provider=recording.path.parent.name,
        model="anthropic/m",
        upstream_model=recording.exchange["model"] or "m",
        dialect=dialect,
        supports=frozenset({"structured_output"}),
        project="p",
        location="l",
    )


def is_ours(recording: Recording) -> bool:
    """Whether a request is known and offers only functions: Anthropic's own tools we never do."""
    tools = recording.sent.get("tools") or ()
    return bool(recording.sent) and all(tool.get("type") in (None, "custom") for tool in tools)


def read(sent: dict[str, Any]) -> GenerationRequest:
    """The request in our words."""
    messages = [*_system(sent.get("system") or ())]
    for message in sent["messages"]:
        messages += _messages(message["role"], message["content"])
    choice = sent.get("tool_choice") or {}
    thinking = sent.get("thinking") or {}
    return GenerationRequest(
        model="anthropic/m",
        messages=tuple(messages),
        tools=tuple(_tool(tool) for tool in sent.get("tools") or ()),
        tool_choice=_choice(choice),
        parallel_tool_calls=False if choice.get("disable_parallel_tool_use") else None,
        output_tokens_max=sent["max_tokens"],
        sampling=Sampling(
            temperature=sent.get("temperature"),
            top_p=sent.get("top_p"),
            top_k=sent.get("top_k"),
            stop=tuple(sent.get("stop_sequences") or ()),
        ),
        reasoning=_reasoning(thinking, sent.get("output_config") or {}),
        user=(sent.get("metadata") or {}).get("user_id"),
    )


def _reasoning(thinking: dict[str, Any], config: dict[str, Any]) -> ReasoningOptions | None:
    match thinking.get("type"):
        case "enabled":
            return ReasoningOptions(tokens_max=thinking["budget_tokens"])
        case "adaptive":
            return ReasoningOptions(enabled=True, effort=config.get("effort"))
        case _:
            return None


def _choice(choice: dict[str, Any]) -> ToolChoice | None:
    mode: Any = _MODES.get(choice.get("type", ""))
    return ToolChoice(mode=mode, name=choice.get("name")) if mode else None


def _tool(tool: dict[str, Any]) -> Tool:
    return Tool(
        name=tool["name"],
        description=tool.get("description"),
        parameters=tool["input_schema"],
        strict=tool.get("strict"),
        cache=_cache(tool),
    )


def _system(content: Any) -> Iterable[Message]:
    for block in _blocks(content):
        yield SystemMessage(content=(_text(block),))


def _messages(role: str, content: Any) -> list[Message]:
    blocks = _blocks(content)
    if role == "system":
        return [SystemMessage(content=tuple(_text(block) for block in blocks))]
    if role == "assistant":
        return [AssistantMessage(content=tuple(_said(block) for block in blocks))]
    results = [block for block in blocks if block["type"] == "tool_result"]
    shown = [block for block in blocks if block["type"] != "tool_result"]
    made: list[Message] = [_result(block) for block in results]
    if shown:
        made.append(UserMessage(content=tuple(_shown(block) for block in shown)))
    return made


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _result(block: dict[str, Any]) -> ToolMessage:
    inside = [_shown(inner) for inner in _blocks(block.get("content") or ())]
    if inside and (cache := _cache(block)):
        inside.append(Text(text="", cache=cache))
    return ToolMessage(call_id=block["tool_use_id"], content=tuple(inside))


def _said(block: dict[str, Any]) -> Text | Reasoning | ToolCall:
    match block["type"]:
        case "text":
            return _text(block)
        case "thinking":
            signed = Provenance(signer=CLAUDE, signature=block["signature"])
            return Reasoning(text=block["thinking"], provenance=signed)
        case "redacted_thinking":
            return Reasoning(text="", provenance=Provenance(signer=CLAUDE, data=block["data"]))
        case "tool_use":
            arguments = json.dumps(block["input"])
            return ToolCall(id=block["id"], name=block["name"], arguments=arguments)
        case _:
            whole = Provenance(signer=ANTHROPIC_BLOCKS, data=json.dumps(block))
            return Reasoning(text="", provenance=whole)


def _shown(block: dict[str, Any]) -> Any:
    match block["type"]:
        case "text":
            return _text(block)
        case "image":
            return Image(source=_source(block["source"]), cache=_cache(block))
        case "document":
            source, title = _source(block["source"]), block.get("title")
            return Document(source=source, filename=title, cache=_cache(block))
        case kind:
            raise AssertionError(f"a recording with a block of {kind}")


def _text(block: dict[str, Any]) -> Text:
    return Text(text=block["text"], cache=_cache(block))


def _source(source: dict[str, Any]) -> MediaSource:
    if source["type"] == "url":
        return MediaUrl(url=source["url"])
    return InlineMedia(media_type=source["media_type"], base64=source["data"])


def _cache(block: dict[str, Any]) -> CacheMark | None:
    mark = block.get("cache_control")
    return CacheMark(lifetime=mark.get("ttl") or "5m") if mark else None


def plain(body: dict[str, Any]) -> dict[str, Any]:
    """A body in one of its equal spellings, without the differences that were reviewed."""
    kept = {
        name: value for name, value in body.items() if name not in _OURS and name not in _AUTOMATIC
    }
    kept["system"] = [_plain(block) for block in _blocks(kept.get("system") or ())]
    kept["messages"] = plain_messages(kept["messages"])
    return {name: made for name, value in kept.items() if (made := _plain(value)) not in ([], {})}


def plain_messages(messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Turns in one spelling: text is blocks, empty text is none, runs of users are one turn."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        blocks = [_plain(block) for block in _blocks(message["content"])]
        blocks = [block for block in blocks if block.get("text", "x").strip()]
        if turns and turns[-1]["role"] == message["role"] == "user":
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": message["role"], "content": blocks})
    return turns


def _plain(value: Any) -> Any:
    match value:
        case {"type": "tool_result", "content": str(content), **rest}:
            inside = [{"type": "text", "text": content}] if content.strip() else []
            return _plain({"type": "tool_result", **rest, "content": inside})
        case {"type": "ephemeral", **rest}:
            # Five minutes are what a mark without a lifetime means.
            return {"type": "ephemeral", **{k: v for k, v in rest.items() if v != "5m"}}
        case {"type": "adaptive" | "enabled" as kind, **rest}:
            # We always say whether thoughts are to be shown.
            return {"type": kind, **{k: v for k, v in rest.items() if k != "display"}}
        case dict():
            made = {key: _plain(inner) for key, inner in value.items() if key not in _LOST}
            # Null, nothing and the default of parallel calls are not said at all.
            return {
                key: inner
                for key, inner in made.items()
                if inner is not None
                and (inner != [] or key == "required")
                and not (key == "description" and inner == "")
                and not (key == "disable_parallel_tool_use" and inner is False)
            }
        case list():
            return [_plain(inner) for inner in value]
        case _:
            return value
