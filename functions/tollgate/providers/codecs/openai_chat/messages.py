"""Messages in OpenAI's chat completions format, in the dialect of the server."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Final, assert_never

from tollgate.core.content import (
    Audio,
    CacheMark,
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
from tollgate.core.request import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from tollgate.providers.codecs.openai_chat.thoughts import render_thoughts
from tollgate.providers.ports.base import Target
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.shared.openai_writing import FILENAME, url_of
from tollgate.providers.shared.own_format import OwnFormat

_ATTACHED: Final = "(attached below)"


class ChatMessages:
    """Encodes the messages of one request in the dialect of one target."""

    def __init__(self, target: Target, own: OwnFormat) -> None:
        self._dialect = target.dialect
        self._own = own
        self._encoded: list[JsonValue] = []
        self._media: list[JsonValue] = []

    def encode(self, messages: Sequence[Message]) -> list[JsonValue]:
        """Return all messages. The media in tool results are moved to a user turn after the
        results.

        A tool message can contain only text.
        """
        for message in messages:
            if not isinstance(message, ToolMessage):
                self._show_media()
            self._encoded.append(self._own.add(self._message(message), message.native))
        self._show_media()
        return self._encoded

    def _show_media(self) -> None:
        if self._media:
            self._encoded.append({"role": "user", "content": self._media})
            self._media = []

    def _message(self, message: Message) -> dict[str, JsonValue]:
        match message:
            case SystemMessage():
                # Only OpenAI accepts the role `developer`.
                role = message.role if self._dialect.developer_role else "system"
                content = self._content(message.content)
                return self._named({"role": role, "content": content}, message.name)
            case UserMessage():
                content = self._content(message.content)
                return self._named({"role": "user", "content": content}, message.name)
            case AssistantMessage():
                return self._named(self._assistant(message), message.name)
            case ToolMessage():
                return self._result(message)
            case _:
                assert_never(message)

    def _named(self, message: dict[str, JsonValue], name: str | None) -> dict[str, JsonValue]:
        return (
            message if name is None or not self._dialect.message_names else message | {"name": name}
        )

    def _result(self, message: ToolMessage) -> dict[str, JsonValue]:
        texts = [part for part in message.content if isinstance(part, Text)]
        media = [part for part in message.content if not isinstance(part, Text)]
        self._media += [self._part(part) for part in media]
        return {
            "role": "tool",
            "tool_call_id": self._call_id(message.call_id),
            "content": self._content(texts) or (_ATTACHED if media else ""),
        }

    def _assistant(self, message: AssistantMessage) -> dict[str, JsonValue]:
        texts: list[Text] = []
        thoughts: list[Reasoning] = []
        calls: list[ToolCall] = []
        for part in message.content:
            match part:
                case Text():
                    texts.append(part)
                case Refusal():
                    # Only OpenAI has a field for refusals, so a refusal is sent as text.
                    texts.append(Text(text=part.text))
                case Reasoning():
                    thoughts.append(part)
                case ToolCall():
                    calls.append(part)
                case MadeImage():
                    # Servers do not accept images that a model made; `keep_readable` has removed
                    # them.
                    pass
                case _:
                    assert_never(part)
        text = "".join(piece.text for piece in texts)
        encoded: dict[str, JsonValue] = {"role": "assistant", "content": text}
        if any(self._own.is_sent(text.native) for text in texts) or (
            self._dialect.cache_marks and any(text.cache for text in texts)
        ):
            encoded["content"] = self._content(text for text in texts if text.text)
        if calls:
            encoded["content"] = encoded["content"] or None
            encoded["tool_calls"] = [self._call(call) for call in calls]
        return encoded | self._thoughts(thoughts, text, calls)

    def _thoughts(
        self, thoughts: Sequence[Reasoning], text: str, calls: Sequence[ToolCall]
    ) -> dict[str, JsonValue]:
        """Return the fields of an assistant turn that contain its reasoning."""
        thought = "".join(reasoning.text for reasoning in thoughts)
        match self._dialect.reasoning_field:
            case None:
                return {}
            case "reasoning" | "reasoning_content" as field:
                # DeepSeek requires the field on every turn that calls a tool, even if it is empty.
                return {field: thought} if thoughts or calls else {}
            case "reasoning_details":
                return render_thoughts(thoughts, calls)
            case "think_tags":
                tagged = f"<think>\n{thought}\n</think>\n\n{text}"
                return {"content": tagged} if thought else {}
            case "thinking_parts":
                content: list[JsonValue] = [
                    {"type": "thinking", "thinking": [{"type": "text", "text": thought}]}
                ]
                if text:
                    content.append({"type": "text", "text": text})
                return {"content": content} if thought else {}
            case unknown:
                assert_never(unknown)

    def _call(self, call: ToolCall) -> JsonValue:
        encoded: dict[str, JsonValue] = {
            "id": self._call_id(call.id),
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments or "{}"},
        }
        signed = call.provenance
        if signed is not None and self._dialect.reasoning_field != "reasoning_details":
            encoded["extra_content"] = {"google": {"thought_signature": signed.signature}}
        return self._own.add(encoded, call.native)

    def _call_id(self, id_: str) -> str:
        """Return the id, or else an allowed id that is derived from it; a call and its result get
        the same id.
        """
        length = self._dialect.tool_call_id_length
        if length is None or re.fullmatch(rf"[a-zA-Z0-9]{{{length}}}", id_):
            return id_
        return hashlib.sha256(id_.encode()).hexdigest()[:length]

    def _content(self, parts: Iterable[UserContent | ResultContent]) -> JsonValue:
        encoded = [self._part(part) for part in parts]
        match encoded:
            case []:
                return ""
            case [{"type": "text", "text": str(text), **rest}] if not rest:
                return text
            case _:
                return encoded

    def _part(self, part: UserContent | ResultContent) -> JsonValue:
        match part:
            case Text():
                text = add_mark({"type": "text", "text": part.text}, part.cache, self._dialect)
                return self._own.add(text, part.native)
            case Image():
                image: dict[str, JsonValue] = {"url": url_of(part.source)}
                if part.detail is not None:
                    image["detail"] = part.detail
                encoded = add_mark(
                    {"type": "image_url", "image_url": image}, part.cache, self._dialect
                )
                return self._own.add(encoded, part.native)
            case Audio():
                audio: JsonValue = {"data": part.source.base64, "format": part.format}
                return {"type": "input_audio", "input_audio": audio}
            case Document():
                return add_mark(self._document(part), part.cache, self._dialect)
            case _:
                assert_never(part)

    def _document(self, part: Document) -> dict[str, JsonValue]:
        if isinstance(part.source, MediaUrl) and "file" not in self._dialect.fetches_urls:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                "messages: this model accepts files as data, not by URL.",
                param="messages",
            )
        match self._dialect.document_part:
            case "file":
                # OpenRouter accepts a URL in `file_data`.
                file: JsonValue = {
                    "filename": part.filename or FILENAME,
                    "file_data": url_of(part.source),
                }
                return {"type": "file", "file": file}
            case "document_url":
                document: dict[str, JsonValue] = {
                    "type": "document_url",
                    "document_url": url_of(part.source),
                }
                name = part.filename
                return document if name is None else document | {"document_name": name}
            case unknown:
                assert_never(unknown)


def add_mark(
    encoded: dict[str, JsonValue], cache: CacheMark | None, dialect: Dialect
) -> dict[str, JsonValue]:
    """Return a part or a tool, with its cache mark if the server accepts marks."""
    if cache is None or not dialect.cache_marks:
        return encoded
    mark: dict[str, JsonValue] = {"type": "ephemeral"}
    return encoded | {"cache_control": mark | ({"ttl": "1h"} if cache.lifetime == "1h" else {})}
