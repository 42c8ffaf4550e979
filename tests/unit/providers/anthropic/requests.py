"""Requests for Claude, shared by the tests of its encoder."""

from typing import Any

from tollgate.core.content import Reasoning, Refusal, Text, ToolCall
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    Message,
    SystemMessage,
    Tool,
    ToolMessage,
    UserMessage,
)
from tollgate.providers.ports.base import Target, WireRequest
from tollgate.providers.ports.dialect import ClaudeDialect, Dialect
from tollgate.providers.ports.formats import codec_of

# Up to 4.5: thinks by budget and only when asked, continues what it is said to have begun.
OLDER = Dialect(
    reasoning="claude_budget",
    refuses=(),
    claude=ClaudeDialect(thinking_off="absent", prefill=True),
)
# From 4.7 on, in its strictest form.
NEWER = Dialect(
    reasoning="claude_adaptive",
    efforts=("low", "medium", "high", "xhigh", "max"),
    refuses=("temperature", "top_k", "top_p"),
    claude=ClaudeDialect(thinking_off="never", system_turns=True),
)
WEATHER = Tool(name="weather", description="The weather.", parameters={"type": "object"})


def target(dialect: Dialect = OLDER, **fields: Any) -> Target:
    stated = {
        "upstream_model": "m-1",
        "output_tokens_max": 64_000,
        "supports": frozenset({"structured_output"}),
        **fields,
    }
    return Target(provider="acme", model="anthropic/m", dialect=dialect, **stated)


def texts(*parts: str) -> tuple[Text, ...]:
    return tuple(Text(text=part) for part in parts)


def user(*parts: str) -> UserMessage:
    return UserMessage(content=texts(*parts))


def system(text: str) -> SystemMessage:
    return SystemMessage(content=texts(text))


def call(id_: str = "a", name: str = "weather", arguments: str = "{}") -> ToolCall:
    return ToolCall(id=id_, name=name, arguments=arguments)


def assistant(*parts: Text | Reasoning | Refusal | ToolCall) -> AssistantMessage:
    return AssistantMessage(content=parts)


def result(id_: str, *parts: str) -> ToolMessage:
    return ToolMessage(call_id=id_, content=texts(*parts))


def encoded(*messages: Message, at: Target | None = None, **fields: Any) -> WireRequest:
    request = GenerationRequest(model="anthropic/m", messages=messages, **fields)
    return codec_of("anthropic").encode(request, at or target())


def body(*messages: Message, **fields: Any) -> Any:
    """The body as JSON that anything may be asked of."""
    return encoded(*messages, **fields).body
