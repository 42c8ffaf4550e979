"""The messages of a chat completion request, from the wire to the middle."""

from collections.abc import Iterator
from typing import Final, assert_never

from pydantic import JsonValue

from tollgate.core.content import Audio, Opaque, Reasoning, Refusal, Text, ToolCall
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.request import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from tollgate.ingress.chat_completions.media import MediaCount, cache_mark, content
from tollgate.ingress.chat_completions.wire import messages as said
from tollgate.ingress.chat_completions.wire import parts

_OPENROUTER: Final = "openrouter"
# The formats in which Claude's thoughts are signed alike, wherever they come from.
_CLAUDES: Final = frozenset({"anthropic-claude-v1"})


def messages(wire: list[said.Message]) -> tuple[Message, ...]:
    """All messages; RequestError with the field at fault."""
    count = MediaCount()
    return tuple(_message(message, f"messages[{n}]", count) for n, message in enumerate(wire))


def _message(message: said.Message, path: str, count: MediaCount) -> Message:
    match message:
        case said.SystemMessage() | said.DeveloperMessage():
            return SystemMessage(
                content=_texts(message.content), role=message.role, name=message.name
            )
        case said.UserMessage():
            return UserMessage(
                content=(Text(text=message.content),)
                if isinstance(message.content, str)
                else tuple(
                    content(part, f"{path}.content[{n}]", count)
                    for n, part in enumerate(message.content)
                ),
                name=message.name,
            )
        case said.AssistantMessage():
            return _assistant(message, path)
        case said.ToolMessage():
            return _result(message, path, count)
        case _:
            assert_never(message)


def _texts(content: str | list[parts.TextPart]) -> tuple[Text, ...]:
    if isinstance(content, str):
        return (Text(text=content),)
    return tuple(Text(text=part.text, cache=cache_mark(part.cache_control)) for part in content)


def _result(message: said.ToolMessage, path: str, count: MediaCount) -> ToolMessage:
    if not isinstance(message.content, list):
        text = Text(text=message.content or "")
        return ToolMessage(call_id=message.tool_call_id, content=(text,))
    returned = []
    for n, part in enumerate(message.content):
        part_path = f"{path}.content[{n}]"
        shown = content(part, part_path, count)
        if isinstance(shown, Audio):
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"{part_path} must not be a sound: a tool hands back text, images and documents.",
                param=part_path,
            )
        returned.append(shown)
    return ToolMessage(call_id=message.tool_call_id, content=tuple(returned))


def _assistant(message: said.AssistantMessage, path: str) -> AssistantMessage:
    content = (*_reasoning(message), *_said(message), *_calls(message))
    if not content:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"{path}.content is required of an assistant message without tool_calls.",
            param=f"{path}.content",
        )
    return AssistantMessage(content=content, name=message.name)


def _reasoning(message: said.AssistantMessage) -> Iterator[Reasoning]:
    if message.reasoning_details:
        for detail in message.reasoning_details:
            yield Reasoning(text=detail.text or detail.summary or "", opaque=_opaque(detail))
        return
    text = message.reasoning or message.reasoning_content
    if text:
        yield Reasoning(text=text)


def _opaque(detail: said.ReasoningDetail) -> Opaque:
    """What providers want back: as we told it, or in the fields that OpenRouter has for it.

    OpenRouter's are kept whole for OpenRouter itself, and under the name of who signed them.
    """
    if detail.opaque is not None:
        return detail.opaque
    if detail.signature is None and detail.data is None:
        return {}
    kept: dict[str, JsonValue] = {
        _OPENROUTER: {"reasoning_details": [detail.model_dump(exclude_none=True)]}
    }
    if detail.format in _CLAUDES:
        signed = {"signature": detail.signature, "redacted_thinking": detail.data}
        kept["anthropic"] = {name: value for name, value in signed.items() if value is not None}
    return kept


def _said(message: said.AssistantMessage) -> Iterator[Text | Refusal]:
    content = message.content
    if isinstance(content, str):
        # Beside calls an empty string stands for null, and providers refuse empty text.
        if content or not message.tool_calls:
            yield Text(text=content)
    else:
        for part in content or ():
            match part:
                case parts.TextPart():
                    yield Text(text=part.text, cache=cache_mark(part.cache_control))
                case parts.RefusalPart():
                    yield Refusal(text=part.refusal)
                case _:
                    assert_never(part)
    if message.refusal:
        yield Refusal(text=message.refusal)


def _calls(message: said.AssistantMessage) -> Iterator[ToolCall]:
    for call in message.tool_calls or ():
        yield ToolCall(
            id=call.id,
            name=call.function.name,
            arguments=call.function.arguments,
            opaque=call.extra_content or {},
        )
