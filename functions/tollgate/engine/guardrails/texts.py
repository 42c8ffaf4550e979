"""Finds and changes the texts of a request that reach the provider, and the texts within JSON."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Final, TypeVar, assert_never

from msgspec import Struct
from msgspec.structs import replace
from pydantic_core import to_json

from tollgate.core.content import Document, Image, Reasoning, Refusal, Text, ToolCall, UserContent
from tollgate.core.json_value import JsonObject, JsonValue
from tollgate.core.request import (
    AssistantContent,
    AssistantMessage,
    GenerationRequest,
    Message,
    NativeOptions,
    SchemaOutput,
    SystemMessage,
    Tool,
    ToolMessage,
    UserMessage,
)
from tollgate.routing.guardrail_sections import JudgedStage

ChangeText = Callable[[JudgedStage, str], str]
"""A function that returns the replacement for a text."""
# No pattern matches more characters, except base64.
_JOINT_CHARS: Final = 256
_Part = TypeVar("_Part", bound=UserContent | AssistantContent)


def change_texts(request: GenerationRequest, change: ChangeText) -> GenerationRequest:
    """Return a request whose texts are replaced, in the order in which the model reads them."""
    messages, *further = (
        tuple(_change_message(message, change) for message in each)
        for each in request.conversations
    )
    output = request.output_format
    if isinstance(output, SchemaOutput):
        output = replace(
            output,
            schema=_change_object(output.schema, change),
            description=_change_optional(output.description, change),
        )
    native = request.native
    return replace(
        request,
        messages=messages,
        further=tuple(further),
        suffix=_change_optional(request.suffix, change),
        tools=tuple(_change_tool(tool, change) for tool in request.tools),
        output_format=output,
        guided=_change_object(request.guided, change),
        native=_change_native(native, change) if native is not None else None,
    )


def change_arguments(
    text: str, change: Callable[[str], str], *, change_whole: Callable[[str], str] | None = None
) -> str:
    """Return a call's arguments with texts and numbers replaced; the result is valid JSON.

    Of fields with the same name, only the last remains, because no other was judged. At the end,
    `change_whole` replaces the JSON; by default, `change`.
    """
    pairs = 0

    def count(fields: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        nonlocal pairs
        pairs += len(fields) - len(dict(fields))
        return dict(fields)

    try:
        arguments = json.loads(text, object_pairs_hook=count)
    except (ValueError, RecursionError):
        return change(text)
    changed = change_json(arguments, change)
    written = text if changed == arguments and not pairs else to_json(changed).decode()
    return (change_whole or change)(written)


def change_json(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    """Return a JSON value with its names, texts and numbers replaced."""
    match value:
        case str():
            return change(value)
        case bool() | None:
            return value
        case int() | float():
            written = str(value)
            return value if (changed := change(written)) == written else changed
        case Mapping():
            return {change(name): change_json(inside, change) for name, inside in value.items()}
        case _:
            return [change_json(inside, change) for inside in value]


def texts_of(request: GenerationRequest) -> Iterator[tuple[JudgedStage, str]]:
    """Yield the texts of a request with their stages."""
    found: list[tuple[JudgedStage, str]] = []

    def note(stage: JudgedStage, text: str) -> str:
        found.append((stage, text))
        return text

    change_texts(request, note)
    yield from (each for each in found if each[1])


class Joint(Struct, frozen=True):
    """The text around the place where a part of a message ends and the next one begins."""

    stage: JudgedStage
    text: str
    place: int


def joints_of(request: GenerationRequest) -> Iterator[Joint]:
    """Yield the joints between the texts of each message, which models read as one text."""
    for message in chain.from_iterable(request.conversations):
        stage: JudgedStage = "tool_results" if isinstance(message, ToolMessage) else "input"
        texts = [part.text for part in message.content if isinstance(part, Text)]
        whole, place = "".join(texts), 0
        for text in texts[:-1]:
            place += len(text)
            start = max(0, place - _JOINT_CHARS)
            yield Joint(stage, whole[start : place + _JOINT_CHARS], place - start)


def names_of(request: GenerationRequest) -> Iterator[str]:
    """Yield texts that reach the provider but cannot be masked, because they must stay equal."""
    yield from request.sampling.stop
    yield from (tool.name for tool in request.tools)
    for message in chain.from_iterable(request.conversations):
        if not isinstance(message, ToolMessage) and message.name is not None:
            yield message.name
        yield from (part.name for part in message.content if isinstance(part, ToolCall))


def _change_message(message: Message, change: ChangeText) -> Message:
    message = replace(message, native=_change_unknown(message.native, change))
    match message:
        case SystemMessage(content=content):
            return replace(message, content=tuple(_change_part(each, change) for each in content))
        case UserMessage(content=content):
            return replace(message, content=tuple(_change_part(each, change) for each in content))
        case AssistantMessage(content=content):
            return replace(message, content=tuple(_change_part(each, change) for each in content))
        case ToolMessage(content=content):
            results = (_change_part(each, change, "tool_results") for each in content)
            return replace(message, content=tuple(results))
        case _:
            assert_never(message)


def _change_part(part: _Part, change: ChangeText, stage: JudgedStage = "input") -> _Part:
    match part:
        case Text():
            native = _change_unknown(part.native, change)
            return replace(part, text=change(stage, part.text), native=native)
        case Reasoning() | Refusal():
            return replace(part, text=change(stage, part.text))
        case ToolCall(arguments=text, is_text=True):
            return replace(part, arguments=change("tool_arguments", text))
        case ToolCall(arguments=text):
            arguments = change_arguments(text, partial(change, "tool_arguments"))
            return replace(part, arguments=arguments)
        case Image() | Document():
            return replace(part, native=_change_unknown(part.native, change))
        case _:
            return part


def _change_tool(tool: Tool, change: ChangeText) -> Tool:
    return replace(
        tool,
        description=_change_optional(tool.description, change),
        parameters=_change_object(tool.parameters, change),
        native=_change_unknown(tool.native, change),
    )


def _change_native(native: NativeOptions, change: ChangeText) -> NativeOptions:
    return replace(
        native,
        fields=_change_object(native.fields, change),
        tools=tuple(_change_object(tool, change) for tool in native.tools),
        tool_fields=_change_each(native.tool_fields, change),
        unknown=_change_object(native.unknown, change),
        within=_change_each(native.within, change),
    )


def _change_each(fields: Mapping[str, JsonObject], change: ChangeText) -> Mapping[str, JsonObject]:
    return {name: _change_object(inside, change) for name, inside in fields.items()}


def _change_unknown(fields: JsonObject | None, change: ChangeText) -> JsonObject | None:
    return None if fields is None else _change_object(fields, change)


def _change_object(fields: JsonObject, change: ChangeText) -> JsonObject:
    """Return an object with its values replaced; its field names belong to the format."""
    of_input = partial(change, "input")
    return {name: change_json(inside, of_input) for name, inside in fields.items()}


def _change_optional(text: str | None, change: ChangeText) -> str | None:
    return None if text is None else change("input", text)
