"""Encodes a conversation as the input items of a Responses request."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import assert_never

from tollgate.core.content import (
    Audio,
    Document,
    Image,
    MadeImage,
    MediaUrl,
    Reasoning,
    Refusal,
    ResultContent,
    Text,
    ToolCall,
    UserContent,
)
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.json_value import JsonValue
from tollgate.core.request import (
    AssistantContent,
    AssistantMessage,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from tollgate.providers.codecs.openai_responses.wire import BETWEEN_SUMMARIES
from tollgate.providers.ports.base import Target
from tollgate.providers.shared.openai_writing import FILENAME, url_of


def items(messages: Sequence[Message], target: Target) -> list[JsonValue]:
    """Return the input items; reasoning without encrypted content is left out."""
    text_calls = {
        part.id
        for message in messages
        for part in message.content
        if isinstance(part, ToolCall) and part.is_text
    }
    return [item for message in messages for item in _items(message, target, text_calls)]


def _items(message: Message, target: Target, text_calls: Collection[str]) -> Iterator[JsonValue]:
    match message:
        case SystemMessage():
            # Only OpenAI accepts the role `developer`.
            role = message.role if target.dialect.developer_role else "system"
            yield {"role": role, "content": _content(message.content)}
        case UserMessage():
            yield {"role": "user", "content": _content(message.content)}
        case AssistantMessage():
            yield from _assistant(message)
        case ToolMessage():
            is_text = message.call_id in text_calls
            yield {
                "type": "custom_tool_call_output" if is_text else "function_call_output",
                "call_id": message.call_id,
                "output": _content(message.content),
            }
        case _:
            assert_never(message)


def _assistant(message: AssistantMessage) -> Iterator[JsonValue]:
    """Yield an item for each part, in order, because reasoning must precede the call that it led
    to.
    """
    for is_reasoning, group in groupby(message.content, _item_of_reasoning):
        if is_reasoning:
            yield from _reasoning([part for part in group if isinstance(part, Reasoning)])
            continue
        for part in group:
            match part:
                case Text() | Refusal():
                    if part.text:
                        yield {"role": "assistant", "content": part.text}
                case ToolCall(is_text=True):
                    yield {
                        "type": "custom_tool_call",
                        "call_id": part.id,
                        "name": part.name,
                        "input": part.arguments,
                    }
                case ToolCall():
                    yield {
                        "type": "function_call",
                        "call_id": part.id,
                        "name": part.name,
                        "arguments": part.arguments or "{}",
                    }
                case Reasoning() | MadeImage():
                    # Reasoning is in other groups, and `keep_readable` has already removed images.
                    pass
                case _:
                    assert_never(part)


def _item_of_reasoning(part: AssistantContent) -> tuple[str | None] | None:
    """Return a key that all parts of one reasoning item share; None for other parts."""
    if not isinstance(part, Reasoning):
        return None
    return (part.provenance.id if part.provenance else None,)


def _reasoning(parts: Sequence[Reasoning]) -> Iterator[JsonValue]:
    """Yield a reasoning item for each encrypted content, with all summaries in the first item."""
    signed = [part.provenance for part in parts if part.provenance and part.provenance.data]
    texts = [part.text for part in parts if part.text]
    later = (text.removeprefix(BETWEEN_SUMMARIES) for text in texts[1:])
    summary: list[JsonValue] = [
        {"type": "summary_text", "text": text} for text in (*texts[:1], *later)
    ]
    for number, provenance in enumerate(signed):
        item: dict[str, JsonValue] = {
            "type": "reasoning",
            "encrypted_content": provenance.data,
            "summary": summary if number == 0 else [],
        }
        if provenance.id is not None:
            item["id"] = provenance.id
        yield item


def _content(parts: Iterable[UserContent | ResultContent]) -> JsonValue:
    encoded = [_part(part) for part in parts]
    match encoded:
        case []:
            return ""
        case [{"type": "input_text", "text": str(text)}]:
            return text
        case _:
            return encoded


def _part(part: UserContent | ResultContent) -> JsonValue:
    match part:
        case Text():
            return {"type": "input_text", "text": part.text}
        case Image():
            url = url_of(part.source)
            return {"type": "input_image", "image_url": url, "detail": part.detail or "auto"}
        case Document(source=MediaUrl(url=url)):
            return {"type": "input_file", "file_url": url}
        case Document():
            name = part.filename or FILENAME
            return {"type": "input_file", "filename": name, "file_data": url_of(part.source)}
        case Audio():
            raise RequestError(
                ErrorCode.AUDIO_NOT_SUPPORTED,
                "messages: this model does not accept input_audio.",
                param="messages",
            )
        case _:
            assert_never(part)
