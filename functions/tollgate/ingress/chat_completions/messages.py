"""Parses the messages of a chat completion request into core messages."""

from collections.abc import Iterator
from typing import assert_never

from tollgate.core.content import Audio, InlineMedia, MadeImage, Provenance, Refusal, Text, ToolCall
from tollgate.core.request import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from tollgate.core.signers import GEMINI
from tollgate.ingress.chat_completions.media import parse_image, parse_part
from tollgate.ingress.chat_completions.returned_runs import parse_rounds
from tollgate.ingress.chat_completions.thoughts import (
    place_thoughts,
    proofs_of_calls,
    read_thoughts,
)
from tollgate.ingress.chat_completions.wire import messages as wire
from tollgate.ingress.chat_completions.wire import parts
from tollgate.ingress.shared.media import MediaCount, field_refusal, parse_cache_mark
from tollgate.ingress.shared.wire.request_model import unknown_of


def parse_messages(wire_messages: list[wire.Message]) -> tuple[Message, ...]:
    """Parse all messages; raise RequestError with the field at fault."""
    count = MediaCount()
    parsed: list[Message] = []
    called: set[str] = set()
    for n, message in enumerate(wire_messages):
        if isinstance(message, wire.AssistantMessage):
            called.update(call.id for call in message.tool_calls or ())
        elif isinstance(message, wire.ToolMessage) and message.tool_call_id not in called:
            raise field_refusal(
                f"messages[{n}].tool_call_id", "must be the id of a call in an earlier message"
            )
        parsed += _message(message, f"messages[{n}]", count)
    return tuple(parsed)


def _message(message: wire.Message, path: str, count: MediaCount) -> Iterator[Message]:
    match message:
        case wire.SystemMessage() | wire.DeveloperMessage():
            yield SystemMessage(
                content=_texts(message.content),
                role=message.role,
                name=message.name,
                native=unknown_of(message),
            )
        case wire.UserMessage():
            yield UserMessage(
                content=(Text(text=message.content),)
                if isinstance(message.content, str)
                else tuple(
                    parse_part(part, f"{path}.content[{n}]", count)
                    for n, part in enumerate(message.content)
                ),
                name=message.name,
                native=unknown_of(message),
            )
        case wire.AssistantMessage():
            yield from _answer(message, path, count)
        case wire.ToolMessage():
            yield _result(message, path, count)
        case _:
            assert_never(message)


def _texts(content: str | list[parts.TextPart]) -> tuple[Text, ...]:
    if isinstance(content, str):
        return (Text(text=content),)
    return tuple(map(_text, content))


def _text(part: parts.TextPart) -> Text:
    mark = parse_cache_mark(part.cache_control)
    return Text(text=part.text, cache=mark, native=unknown_of(part))


def _result(message: wire.ToolMessage, path: str, count: MediaCount) -> ToolMessage:
    if not isinstance(message.content, list):
        text = Text(text=message.content or "")
        native = unknown_of(message)
        return ToolMessage(call_id=message.tool_call_id, content=(text,), native=native)
    contents = []
    for n, part in enumerate(message.content):
        part_path = f"{path}.content[{n}]"
        content = parse_part(part, part_path, count)
        if isinstance(content, Audio):
            raise field_refusal(
                part_path, "must not be audio: a tool returns text, images and documents"
            )
        contents.append(content)
    return ToolMessage(
        call_id=message.tool_call_id, content=tuple(contents), native=unknown_of(message)
    )


def _answer(message: wire.AssistantMessage, path: str, count: MediaCount) -> Iterator[Message]:
    """Yield an earlier answer; an answer with server tool runs becomes one message per round."""
    thoughts = read_thoughts(message)
    visible, calls = [*_visible(message)], [*_calls(message)]
    images = [*_made_images(message, path, count)]
    if message.server_tool_calls:
        yield from parse_rounds(
            message, thoughts=thoughts, visible=visible, calls=calls, images=images
        )
        return
    content = (*place_thoughts(thoughts, visible, calls), *images)
    if not content:
        raise field_refusal(
            f"{path}.content", "is required in an assistant message without tool_calls"
        )
    yield AssistantMessage(content=content, name=message.name, native=unknown_of(message))


def _made_images(
    message: wire.AssistantMessage, path: str, count: MediaCount
) -> Iterator[MadeImage]:
    for n, image in enumerate(message.images or ()):
        count.add(f"{path}.images[{n}]")
        url_path = f"{path}.images[{n}].image_url.url"
        source = parse_image(image.image_url.url, url_path)
        if not isinstance(source, InlineMedia):
            raise field_refusal(url_path, "must be a data: URL")
        yield MadeImage(source=source, provenance=_provenance(image.extra_content))


def _visible(message: wire.AssistantMessage) -> Iterator[Text | Refusal]:
    content = message.content
    if isinstance(content, str):
        # If there are calls, an empty string means null, and providers refuse empty strings.
        if content or not (message.tool_calls or message.server_tool_calls):
            yield Text(text=content)
    else:
        for part in content or ():
            match part:
                case parts.TextPart():
                    yield _text(part)
                case parts.RefusalPart():
                    yield Refusal(text=part.refusal)
                case _:
                    assert_never(part)
    if message.refusal:
        yield Refusal(text=message.refusal)


def _calls(message: wire.AssistantMessage) -> Iterator[ToolCall]:
    proofs = dict(proofs_of_calls(message))
    for call in message.tool_calls or ():
        provenance = _provenance(call.extra_content) or proofs.get(call.id)
        match call:
            case wire.FunctionToolCall(function=called):
                yield ToolCall(
                    id=call.id,
                    name=called.name,
                    arguments=called.arguments,
                    provenance=provenance,
                    native=unknown_of(call),
                )
            case wire.CustomToolCall(custom=custom):
                yield ToolCall(
                    id=call.id,
                    name=custom.name,
                    arguments=custom.input,
                    is_text=True,
                    provenance=provenance,
                )
            case _:
                assert_never(call)


def _provenance(extra: wire.ExtraContent | None) -> Provenance | None:
    google = extra.google if extra else None
    if google is None or not google.thought_signature:
        return None
    return Provenance(signer=GEMINI, signature=google.thought_signature)
