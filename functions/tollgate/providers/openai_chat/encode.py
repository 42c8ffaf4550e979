"""A generation request in OpenAI's chat completions format, as its imitators understand it."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final, assert_never

from pydantic import JsonValue

from tollgate.core.content import Reasoning, Refusal, Text, ToolCall
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    Message,
    Sampling,
    SystemMessage,
    Tool,
    ToolChoice,
    ToolMessage,
    UserMessage,
)
from tollgate.providers.base import Target, WireRequest
from tollgate.providers.dialect import Dialect, Parameter

_ANY_OBJECT: Final[Mapping[str, JsonValue]] = {"type": "object", "properties": {}}


def encode(request: GenerationRequest, target: Target) -> WireRequest:
    """The request for `POST {base_url}/chat/completions`, always streamed."""
    dialect = target.dialect
    body: dict[str, JsonValue] = {
        "model": target.upstream_model,
        "messages": [_message(message, dialect) for message in request.messages],
        "stream": True,
    }
    if dialect.stream_usage:
        body["stream_options"] = {"include_usage": True}
    if request.output_tokens_max is not None:
        limits = (request.output_tokens_max, target.output_tokens_max)
        body[dialect.output_limit_field] = min(limit for limit in limits if limit is not None)
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.tool_choice is not None:
            body["tool_choice"] = _tool_choice(request.tool_choice)
    wanted = _parameters(request)
    body |= {name: value for name, value in wanted.items() if name not in dialect.refuses}
    return WireRequest(
        path="/chat/completions",
        body=body,
        adapted=tuple(name for name in wanted if name in dialect.refuses),
    )


def _parameters(request: GenerationRequest) -> dict[Parameter, JsonValue]:
    """What the caller set of the parameters that a server may refuse."""
    sampling: Sampling = request.sampling
    stated: dict[Parameter, JsonValue] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "repetition_penalty": sampling.repetition_penalty,
        "seed": sampling.seed,
        "stop": list(sampling.stop) or None,
        "logit_bias": dict(sampling.logit_bias) or None,
        # OpenAI refuses it without tools.
        "parallel_tool_calls": request.parallel_tool_calls if request.tools else None,
        "user": request.user,
    }
    return {name: value for name, value in stated.items() if value is not None}


def _message(message: Message, dialect: Dialect) -> JsonValue:
    match message:
        case SystemMessage():
            # Every provider but OpenAI knows only `system`.
            role = message.role if dialect.developer_role else "system"
            return _named({"role": role, "content": _content(message.content)}, message.name)
        case UserMessage():
            return _named({"role": "user", "content": _content(message.content)}, message.name)
        case AssistantMessage():
            return _assistant(message, dialect)
        case ToolMessage():
            return {
                "role": "tool",
                "tool_call_id": _call_id(message.call_id, dialect),
                "content": _content(message.content),
            }
        case _:
            assert_never(message)


def _assistant(message: AssistantMessage, dialect: Dialect) -> JsonValue:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[JsonValue] = []
    for part in message.content:
        match part:
            case Text() | Refusal():
                # A refusal goes back as what was said: only OpenAI knows a field for it.
                texts.append(part.text)
            case Reasoning():
                thoughts.append(part.text)
            case ToolCall():
                calls.append(_call(part, dialect))
            case _:
                assert_never(part)
    encoded: dict[str, JsonValue] = {"role": "assistant", "content": "".join(texts)}
    if calls:
        encoded["content"] = "".join(texts) or None
        encoded["tool_calls"] = calls
    if dialect.reasoning_field is not None and (thoughts or calls):
        # DeepSeek asks for the field on every turn that calls a tool, be it empty.
        encoded[dialect.reasoning_field] = "".join(thoughts)
    return _named(encoded, message.name)


def _call(call: ToolCall, dialect: Dialect) -> JsonValue:
    return {
        "id": _call_id(call.id, dialect),
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments or "{}"},
    }


def _call_id(id_: str, dialect: Dialect) -> str:
    """The id, or one derived from it: the same for a call and its result wherever they stand."""
    length = dialect.tool_call_id_length
    if length is None or re.fullmatch(rf"[a-zA-Z0-9]{{{length}}}", id_):
        return id_
    return hashlib.sha256(id_.encode()).hexdigest()[:length]


def _content(texts: Iterable[Text]) -> JsonValue:
    parts = [text.text for text in texts]
    if len(parts) > 1:
        return [{"type": "text", "text": part} for part in parts]
    return parts[0] if parts else ""


def _named(message: dict[str, JsonValue], name: str | None) -> JsonValue:
    return message if name is None else {**message, "name": name}


def _tool(tool: Tool) -> JsonValue:
    function: dict[str, JsonValue] = {
        "name": tool.name,
        "parameters": dict(tool.parameters or _ANY_OBJECT),
    }
    if tool.description is not None:
        function["description"] = tool.description
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _tool_choice(choice: ToolChoice) -> JsonValue:
    if choice.mode == "named":
        return {"type": "function", "function": {"name": choice.name}}
    return choice.mode
