"""Prompts and answers in the JSON of OpenTelemetry's GenAI conventions, within a size.

Schemas: gen-ai-input-messages.json, gen-ai-output-messages.json and gen-ai-system-instructions.json
of github.com/open-telemetry/semantic-conventions-genai 0.1.0, 2026-11-28. Media are named by their
kind, without bytes and without URLs, which may contain signatures.
"""

from collections.abc import Iterable, Mapping
from typing import Final, assert_never

from pydantic_core import to_json

from tollgate.core.content import (
    Audio,
    Document,
    Image,
    MadeImage,
    Reasoning,
    Refusal,
    ServerToolRun,
    Text,
    ToolCall,
)
from tollgate.core.events import Finish
from tollgate.core.json_value import JsonValue
from tollgate.core.request import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from tollgate.core.transcripts import ChatTranscript

CHARACTERS_MAX: Final = 16_384  # in each of the three attributes
_PARTS_MAX: Final = 256
_CUT: Final = " … [cut]"
_FINISHES: Final[Mapping[Finish, str]] = {"tool_calls": "tool_call"}
_Part = Text | Image | Audio | Document | Reasoning | Refusal | ToolCall | MadeImage | ServerToolRun


class _Room:
    """The characters and parts that still fit into an attribute."""

    def __init__(self) -> None:
        self.has_cut = False
        self._characters = CHARACTERS_MAX
        self._parts = _PARTS_MAX

    def is_full(self) -> bool:
        """Return True, and note the cut, if nothing more fits."""
        full = self._characters <= 0 or self._parts <= 0
        self.has_cut |= full
        return full

    def cut(self, text: str) -> str:
        """Return as much of the beginning of a part's text as fits."""
        room = max(self._characters, 0)
        self._characters -= len(text)
        self._parts -= 1
        if len(text) <= room:
            return text
        self.has_cut = True
        return text[:room] + _CUT


def describe_content(
    transcript: ChatTranscript, finish: Finish | None
) -> dict[str, str | bool | None]:
    """Return the attributes for a prompt and its answers; of the prompt, the latest messages fit.

    A request with several conversations is described by the first.
    """
    messages = transcript.request.messages
    leading = next(
        (at for at, each in enumerate(messages) if not isinstance(each, SystemMessage)),
        len(messages),
    )
    instructions, prompt, answer = _Room(), _Room(), _Room()
    system = [part for each in messages[:leading] for part in _show(_parts(each), instructions)]
    shown: list[JsonValue] = []
    for message in reversed(messages[leading:]):
        if prompt.is_full():
            break
        shown.append({"role": _role(message), "parts": _show_message(message, prompt)})
    answers: list[JsonValue] = []
    for fold in transcript.answers:
        if answer.is_full():
            break
        answers.append(
            {
                "role": "assistant",
                "parts": _show(fold.parts, answer),
                "finish_reason": "error" if finish is None else _FINISHES.get(finish, finish),
            }
        )
    has_cut = any(room.has_cut for room in (instructions, prompt, answer))
    return {
        "gen_ai.system_instructions": _json(system),
        "gen_ai.input.messages": _json(shown[::-1]),
        "gen_ai.output.messages": _json(answers),
        "tollgate.content.cut": has_cut or None,
    }


def _json(values: list[JsonValue]) -> str | None:
    return to_json(values).decode() if values else None


def _role(message: Message) -> str:
    match message:
        case SystemMessage():
            return "system"
        case UserMessage():
            return "user"
        case AssistantMessage():
            return "assistant"
        case ToolMessage():
            return "tool"
        case _:
            assert_never(message)


def _show_message(message: Message, room: _Room) -> list[JsonValue]:
    if not isinstance(message, ToolMessage):
        return _show(_parts(message), room)
    texts = "\n".join(part.text for part in message.content if isinstance(part, Text))
    result: JsonValue = {
        "type": "tool_call_response",
        "id": message.call_id,
        "response": room.cut(texts),
    }
    media = (part for part in message.content if not isinstance(part, Text))
    return [result, *_show(media, room)]


def _parts(message: Message) -> Iterable[_Part]:
    return message.content


def _show(parts: Iterable[_Part], room: _Room) -> list[JsonValue]:
    shown: list[JsonValue] = []
    for part in parts:
        if room.is_full():
            break
        shown.append(_show_part(part, room))
    return shown


def _show_part(part: _Part, room: _Room) -> JsonValue:
    match part:
        case Text(text=text) | Refusal(text=text):
            return {"type": "text", "content": room.cut(text)}
        case Reasoning(text=text):
            return {"type": "reasoning", "content": room.cut(text)}
        case ToolCall(id=id_, name=name, arguments=arguments):
            return {
                "type": "tool_call",
                "id": id_,
                "name": name,
                "arguments": room.cut(arguments),
            }
        case ServerToolRun(id=id_, tool=tool, arguments=arguments):
            called: JsonValue = {"type": tool, "arguments": room.cut(arguments)}
            return {"type": "server_tool_call", "id": id_, "name": tool, "server_tool_call": called}
        case Image() | MadeImage():
            return {"type": room.cut("image")}
        case Audio():
            return {"type": room.cut("audio")}
        case Document():
            return {"type": room.cut("document")}
        case _:
            assert_never(part)
