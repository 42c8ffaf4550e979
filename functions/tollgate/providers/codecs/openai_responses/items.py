"""Encodes a conversation as the input items of a Responses request."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, assert_never

from pydantic_core import from_json

from tollgate.core.content import (
    Audio,
    Document,
    Image,
    MadeImage,
    MediaUrl,
    Provenance,
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
from tollgate.core.response_items import ITEM_KINDS
from tollgate.core.signers import OPENAI_COMPACTIONS, OPENAI_ITEMS
from tollgate.core.unknown_fields import refers_to_stored
from tollgate.providers.codecs.openai_responses.wire import BETWEEN_SUMMARIES
from tollgate.providers.ports.base import Target
from tollgate.providers.shared.openai_writing import FILENAME, url_of
from tollgate.providers.shared.own_format import OwnFormat

_Item = dict[str, JsonValue]
# The signers of parts that are items other than reasoning.
_ITEM_SIGNERS: Final = frozenset({OPENAI_COMPACTIONS, OPENAI_ITEMS})


def items(messages: Sequence[Message], target: Target, own: OwnFormat) -> list[JsonValue]:
    """Return the input items; reasoning without encrypted content is left out."""
    text_calls = {
        part.id
        for message in messages
        for part in message.content
        if isinstance(part, ToolCall) and part.is_text
    }
    return [item for message in messages for item in _items(message, target, own, text_calls)]


def _items(
    message: Message, target: Target, own: OwnFormat, text_calls: Collection[str]
) -> Iterator[JsonValue]:
    match message:
        case SystemMessage():
            # Only OpenAI accepts the role `developer`.
            role = message.role if target.dialect.developer_role else "system"
            item: _Item = {"role": role, "content": _content(message.content, own)}
            yield own.add(item, message.native)
        case UserMessage():
            item = {"role": "user", "content": _content(message.content, own)}
            yield own.add(item, message.native)
        case AssistantMessage():
            yield from _assistant(message, own)
        case ToolMessage():
            is_text = message.call_id in text_calls
            item = {
                "type": "custom_tool_call_output" if is_text else "function_call_output",
                "call_id": message.call_id,
                "output": _content(message.content, own),
            }
            yield own.add(item, message.native)
        case _:
            assert_never(message)


def _assistant(message: AssistantMessage, own: OwnFormat) -> Iterator[JsonValue]:
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
                        yield _said(part, own)
                case ToolCall():
                    yield own.add(_call(part), part.native)
                case Reasoning(provenance=Provenance(is_compaction=True, data=str(data))):
                    yield {"type": "compaction", "encrypted_content": data}
                case Reasoning(provenance=Provenance(data=str(data))):
                    yield from _own_item(data)
                case Reasoning() | MadeImage():
                    # Reasoning is in other groups, and `keep_readable` has already removed images.
                    pass
                case _:
                    assert_never(part)


def _said(part: Text | Refusal, own: OwnFormat) -> JsonValue:
    item: _Item = {"role": "assistant", "content": part.text}
    fields = part.native if isinstance(part, Text) else None
    if fields and "content" in fields and own.is_sent(fields):
        item["content"] = [{"type": "output_text", "text": part.text}]
    return own.add(item, fields)


def _call(call: ToolCall) -> _Item:
    if call.is_text:
        return {
            "type": "custom_tool_call",
            "call_id": call.id,
            "name": call.name,
            "input": call.arguments,
        }
    return {
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments or "{}",
    }


def _own_item(data: str) -> Iterator[JsonValue]:
    """Yield an item of unknown type as OpenAI sent it. Items are skipped if a client could have
    made them up to send something that the gateway reads or refuses.
    """
    try:
        item = from_json(data)
    except ValueError:
        return
    match item:
        case {"type": str(type_)} if type_ not in ITEM_KINDS and not refers_to_stored("", item):
            yield item
        case _:
            pass


def _item_of_reasoning(part: AssistantContent) -> tuple[str | None] | None:
    """Return a key that all parts of one reasoning item share; None for other parts."""
    if not isinstance(part, Reasoning):
        return None
    if part.provenance is not None and part.provenance.signer in _ITEM_SIGNERS:
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


def _content(parts: Iterable[UserContent | ResultContent], own: OwnFormat) -> JsonValue:
    encoded: list[JsonValue] = [
        own.add(_part(part), part.native if isinstance(part, Text | Image) else None)
        for part in parts
    ]
    match encoded:
        case []:
            return ""
        case [{"type": "input_text", "text": str(text), **rest}] if not rest:
            return text
        case _:
            return encoded


def _part(part: UserContent | ResultContent) -> _Item:
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
