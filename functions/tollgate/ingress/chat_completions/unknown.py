"""The unknown fields of a chat completion request: what becomes of them, and their names.

Providers of chat completions get them, except those of reasoning, runs, files, audio and custom
tools, which the gateway encodes in another form.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from tollgate.core.request import NativeOptions
from tollgate.core.unknown_fields import unknown_tree
from tollgate.ingress.chat_completions.options import is_bare
from tollgate.ingress.chat_completions.wire import messages, parts, tools
from tollgate.ingress.chat_completions.wire import request as wire
from tollgate.ingress.shared.fields import extra_fields, name_unknown, unknown_preferences
from tollgate.ingress.shared.held_fields import HELD_OF_CHAT
from tollgate.ingress.shared.wire.request_model import Wire

_WIRE_FORMAT: Final = "openai_chat"
_PART: Final = "messages[].content[]."
_CALL: Final = "messages[].tool_calls[]."
_TOOL: Final = "tools[]."


def parse_unknown(chat: wire.ChatFields) -> tuple[NativeOptions | None, tuple[str, ...]]:
    """Return the unknown fields for providers of the format (None if there are none), and the names
    of those that no provider gets.
    """
    names = name_unknown(_carriers(chat), HELD_OF_CHAT)
    ignored = (*names.kept, *_unread(chat))
    if not names.forwarded:
        return None, ignored
    native = NativeOptions(
        wire_format=_WIRE_FORMAT,
        unknown=unknown_tree(chat, HELD_OF_CHAT | chat.__dict__.keys()),
        within={path: unknown_tree(model, model.__dict__.keys()) for path, model in _objects(chat)},
        unknown_names=names.forwarded,
    )
    return native, ignored


def _carriers(chat: wire.ChatFields) -> Iterator[tuple[Wire | None, str]]:
    """Yield the models whose unknown fields providers of the format get, each with its path."""
    yield chat, ""
    yield from ((model, f"{path}.") for path, model in _objects(chat))
    for message in chat.messages:
        if not _is_split(message):
            yield message, "messages[]."
        for part in message.content if isinstance(message.content, list) else ():
            if isinstance(part, parts.TextPart | parts.ImagePart):
                yield part, _PART
            if isinstance(part, parts.ImagePart):
                yield part.image_url, f"{_PART}image_url."
        for call in _calls(message):
            if isinstance(call, messages.FunctionToolCall):
                yield call, _CALL
                yield call.function, f"{_CALL}function."
    for tool in chat.tools or ():
        if isinstance(tool, tools.FunctionTool):
            yield tool, _TOOL
            yield tool.function, f"{_TOOL}function."


def _unread(chat: wire.ChatFields) -> Iterator[str]:
    """Yield the names of unknown fields that no provider gets."""
    yield from unknown_preferences(chat)
    yield from extra_fields(chat.reasoning, "reasoning.")
    for message in chat.messages:
        if _is_split(message):
            yield from extra_fields(message, "messages[].")
        for part in message.content if isinstance(message.content, list) else ():
            if not isinstance(part, parts.TextPart | parts.ImagePart):
                yield from extra_fields(part, _PART)
            if isinstance(part, parts.AudioPart):
                yield from extra_fields(part.input_audio, f"{_PART}input_audio.")
            elif isinstance(part, parts.NestedFilePart):
                yield from extra_fields(part.file, f"{_PART}file.")
        for call in _calls(message):
            yield from extra_fields(call.extra_content, f"{_CALL}extra_content.")
            if isinstance(call, messages.CustomToolCall):
                yield from extra_fields(call, _CALL)
        if isinstance(message, messages.AssistantMessage):
            for detail in message.reasoning_details or ():
                yield from extra_fields(detail, "messages[].reasoning_details[].")
    for tool in chat.tools or ():
        if isinstance(tool, tools.CustomTool):
            yield from extra_fields(tool, _TOOL)
            yield from extra_fields(tool.custom, f"{_TOOL}custom.")


def _calls(message: messages.Message) -> Iterable[messages.ToolCall]:
    return (isinstance(message, messages.AssistantMessage) and message.tool_calls) or ()


def _is_split(message: messages.Message) -> bool:
    """Return whether a message is an answer with runs, which becomes several messages."""
    return isinstance(message, messages.AssistantMessage) and bool(message.server_tool_calls)


def _objects(chat: wire.ChatFields) -> Iterator[tuple[str, Wire]]:
    """Yield the objects of the body that the gateway writes itself, each with its path."""
    if chat.stream_options is not None:
        yield "stream_options", chat.stream_options
    if chat.response_format is not None:
        yield "response_format", chat.response_format
    if isinstance(chat.response_format, wire.JsonSchemaFormat):
        schema = chat.response_format.json_schema
        if schema is not None and not is_bare(schema):
            yield "response_format.json_schema", schema
