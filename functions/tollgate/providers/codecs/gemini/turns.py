"""Encodes the history as Gemini's turns, with all results of a turn's calls in the next turn.

Gemini accepts empty text and consecutive turns of one role. Results must be in the order of their
calls, each with the name of the function.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, assert_never

from msgspec import Struct, field

from tollgate.core.content import Image, MadeImage, Reasoning, Refusal, Text, ToolCall
from tollgate.core.json_value import JsonValue
from tollgate.core.request import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from tollgate.providers.codecs.gemini.calls import NO_SIGNATURE, signature_of, stated_id
from tollgate.providers.codecs.gemini.media import part_of
from tollgate.providers.shared.tool_history import OpenCalls, arguments_object, refuse

# A result must be an object, so a string is sent under this key, which Google's SDKs use as well.
_RESULT: Final = "result"


class Conversation(Struct):
    """The values of `systemInstruction` and `contents`."""

    system: list[JsonValue] = field(default_factory=list)
    turns: list[JsonValue] = field(default_factory=list)


def conversation(messages: Sequence[Message], *, signed_calls: bool) -> Conversation:
    """Return the messages as turns; raise RequestError if Gemini can never accept them."""
    building = _Building(signed_calls)
    for message in messages:
        building.add(message)
    return building.finish()


class _Building:
    def __init__(self, signed_calls: bool) -> None:
        self._history = Conversation()
        self._signed_calls = signed_calls
        self._calls = OpenCalls()
        self._call_ids: list[str] = []
        self._results: dict[str, ToolMessage] = {}
        self._names: dict[str, str] = {}

    def add(self, message: Message) -> None:
        if isinstance(message, ToolMessage):
            self._add_result(message)
            return
        self._end_results()
        match message:
            case SystemMessage() if not self._history.turns:
                self._history.system += [{"text": text.text} for text in message.content]
            case SystemMessage():
                # A later system message stays where it is, because its position is part of its
                # meaning.
                marked = (f"<system>\n{text.text}\n</system>" for text in message.content)
                self._add("user", [{"text": text} for text in marked])
            case UserMessage():
                self._add("user", [part_of(content) for content in message.content])
            case AssistantMessage():
                self._add("model", [*self._assistant(message)])
            case _:
                assert_never(message)

    def finish(self) -> Conversation:
        self._end_results()
        if not self._history.turns:
            refuse("this model needs at least one user message")
        return self._history

    def _add(self, role: str, parts: list[JsonValue]) -> None:
        if parts:
            self._history.turns.append({"role": role, "parts": parts})

    def _add_result(self, message: ToolMessage) -> None:
        self._names[message.call_id] = self._calls.answer(message)
        self._results[message.call_id] = message

    def _end_results(self) -> None:
        """Add the results of a turn in the order of the calls, and then the results' media."""
        self._calls.need_none()
        in_order = [self._results[id_] for id_ in self._call_ids]
        self._add("user", [self._result(message) for message in in_order])
        self._add("user", [part for message in in_order for part in self._media_of(message)])
        self._call_ids.clear()
        self._results.clear()

    def _result(self, message: ToolMessage) -> JsonValue:
        text = "".join(part.text for part in message.content if isinstance(part, Text))
        response: dict[str, JsonValue] = {
            "name": self._names[message.call_id],
            "response": {_RESULT: text},
        }
        return {"functionResponse": _with_id(message.call_id, response)}

    def _media_of(self, message: ToolMessage) -> Iterator[JsonValue]:
        """Yield the media of a result as separate parts: few models accept media in results."""
        media = [part for part in message.content if not isinstance(part, Text)]
        if media:
            yield {"text": f"From the result of {self._names[message.call_id]}:"}
            yield from map(part_of, media)

    def _assistant(self, message: AssistantMessage) -> Iterable[JsonValue]:
        first_call = True
        calls = {part.id for part in message.content if isinstance(part, ToolCall)}
        # OpenRouter stores a call's signature in a reasoning detail that has the call's id.
        apart = {
            part.provenance.id: part.provenance
            for part in message.content
            if isinstance(part, Reasoning) and part.provenance and part.provenance.id in calls
        }
        for part in message.content:
            match part:
                case Text() | Refusal():
                    if part.text:
                        yield {"text": part.text}
                case Reasoning():
                    if part.provenance not in apart.values():
                        yield _thought(part.text, signature_of(part.provenance))
                case MadeImage():
                    yield _image(part)
                case ToolCall():
                    signature = signature_of(part.provenance or apart.get(part.id))
                    yield self._call(part, signature, first=first_call)
                    first_call = False
                case _:
                    assert_never(part)

    def _call(self, call: ToolCall, signature: str | None, *, first: bool) -> JsonValue:
        self._calls.ask(call)
        self._call_ids.append(call.id)
        used = _with_id(call.id, {"name": call.name, "args": arguments_object(call)})
        if signature is None and first and self._signed_calls:
            signature = NO_SIGNATURE
        if signature is None:
            return {"functionCall": used}
        return {"functionCall": used, "thoughtSignature": signature}


def _thought(text: str, signature: str | None) -> JsonValue:
    """Return a thought; if it has no text, return an empty text part that carries the signature."""
    signed: dict[str, JsonValue] = {} if signature is None else {"thoughtSignature": signature}
    return {"text": text, **({"thought": True} if text else {}), **signed}


def _image(image: MadeImage) -> JsonValue:
    """Return an image from an earlier answer, with its signature."""
    part = part_of(Image(source=image.source))
    signature = signature_of(image.provenance)
    if signature is None or not isinstance(part, dict):
        return part
    return {**part, "thoughtSignature": signature}


def _with_id(id_: str, fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
    gemini_id = stated_id(id_)
    return fields if gemini_id is None else {"id": gemini_id, **fields}
