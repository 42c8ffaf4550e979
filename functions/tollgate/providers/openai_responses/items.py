"""A conversation as the input items of a Responses request."""

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from pydantic import JsonValue

from tollgate.core.content import (
    Audio,
    Document,
    Image,
    MediaUrl,
    Reasoning,
    Refusal,
    ResultContent,
    Text,
    ToolCall,
    UserContent,
)
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.request import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from tollgate.providers.base import Target
from tollgate.providers.shared.openai_writing import FILENAME, url_of


def items(messages: Sequence[Message], target: Target) -> list[JsonValue]:
    """Return the items; reasoning is among them only where this provider has encrypted it."""
    return [item for message in messages for item in _items(message, target)]


def _items(message: Message, target: Target) -> Iterator[JsonValue]:
    match message:
        case SystemMessage():
            # Every provider but OpenAI knows only `system`.
            role = message.role if target.dialect.developer_role else "system"
            yield {"role": role, "content": _content(message.content)}
        case UserMessage():
            yield {"role": "user", "content": _content(message.content)}
        case AssistantMessage():
            yield from _assistant(message, target.provider)
        case ToolMessage():
            yield {
                "type": "function_call_output",
                "call_id": message.call_id,
                "output": _content(message.content),
            }
        case _:
            assert_never(message)


def _assistant(message: AssistantMessage, provider: str) -> Iterator[JsonValue]:
    """Yield an item for each part in order: reasoning must stand before the call it led to."""
    for part in message.content:
        match part:
            case Text() | Refusal():
                if part.text:
                    yield {"role": "assistant", "content": part.text}
            case Reasoning():
                item = _reasoning(part, provider)
                if item is not None:
                    yield item
            case ToolCall():
                yield {
                    "type": "function_call",
                    "call_id": part.id,
                    "name": part.name,
                    "arguments": part.arguments or "{}",
                }
            case _:
                assert_never(part)


def _reasoning(part: Reasoning, provider: str) -> JsonValue:
    kept = part.opaque.get(provider)
    if not isinstance(kept, dict) or "encrypted_content" not in kept:
        return None
    texts = kept.get("summary") or ([part.text] if part.text else [])
    summary: list[JsonValue] = [
        {"type": "summary_text", "text": text}
        for text in (texts if isinstance(texts, list) else ())
    ]
    return {
        "type": "reasoning",
        "id": kept.get("id"),
        "encrypted_content": kept["encrypted_content"],
        "summary": summary,
    }


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
                "messages: this model takes no input_audio",
                param="messages",
            )
        case _:
            assert_never(part)
