"""Encodes the history as Converse's turns: alternating roles, and results right after their calls.

Converse refuses empty text, calls without results and results without calls. The encoder leaves
out empty text, and raises a RequestError that names the call if calls and results do not match.
"""

import base64
import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal, assert_never

from msgspec import Struct, field

from tollgate.core.content import MadeImage, Provenance, Reasoning, Refusal, Text, ToolCall
from tollgate.core.json_value import JsonValue
from tollgate.core.request import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from tollgate.providers.codecs.bedrock.content import Blocks
from tollgate.providers.codecs.bedrock.wire import HIDDEN
from tollgate.providers.shared.tool_history import OpenCalls, arguments_object, fitting_id, refuse

_EMPTY_RESULT: Final = "(no output)"
_TOOL_USE_ID: Final = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")


class Conversation(Struct):
    """The values of `system` and `messages`, and the names of the tools that were called."""

    system: list[JsonValue] = field(default_factory=list)
    turns: list[JsonValue] = field(default_factory=list)
    called: list[str] = field(default_factory=list)


def conversation(
    messages: Sequence[Message], blocks: Blocks, *, marks_failures: bool
) -> Conversation:
    """Return the messages as turns; raise RequestError for messages that Converse can never accept.

    `marks_failures` is true if the model accepts a status on each result.
    """
    building = _Building(blocks, marks_failures=marks_failures)
    for message in messages:
        building.add(message)
    return building.finish()


class _Building:
    def __init__(self, content: Blocks, *, marks_failures: bool) -> None:
        self._content = content
        self._marks_failures = marks_failures
        self._history = Conversation()
        self._role: Literal["user", "assistant"] | None = None
        self._blocks: list[JsonValue] = []
        self._calls = OpenCalls()

    def add(self, message: Message) -> None:
        if isinstance(message, ToolMessage):
            self._add_result(message)
            return
        self._calls.need_none()
        match message:
            case SystemMessage() if self._role is None:
                self._history.system += self._content.text_blocks(message.content)
            case SystemMessage():
                # A later system message stays where it is, because its position is part of its
                # meaning.
                texts = [text.text for text in message.content if text.text.strip()]
                self._add("user", [{"text": f"<system>\n{text}\n</system>"} for text in texts])
            case UserMessage():
                self._add("user", self._content.user_blocks(message.content))
            case AssistantMessage():
                self._add("assistant", [*self._assistant(message)])
            case _:
                assert_never(message)

    def finish(self) -> Conversation:
        self._calls.need_none()
        self._end_turn()
        if not self._history.turns:
            refuse("this model needs at least one message that is not empty")
        self._history.called = self._calls.called
        return self._history

    def _add(self, role: Literal["user", "assistant"], blocks: list[JsonValue]) -> None:
        """Add blocks to the current turn, or begin a turn if the role changes."""
        if not blocks:
            return
        if role != self._role:
            self._end_turn()
            self._role = role
        self._blocks += blocks

    def _end_turn(self) -> None:
        if self._role is not None:
            self._history.turns.append({"role": self._role, "content": self._blocks})
        self._blocks = []

    def _add_result(self, message: ToolMessage) -> None:
        self._calls.answer(message)
        content, cache_points = self._content.result_blocks(message.content)
        result: dict[str, JsonValue] = {
            "toolUseId": fitting_id(message.call_id, _TOOL_USE_ID),
            "content": content or [{"text": _EMPTY_RESULT}],
        }
        if message.failed and self._marks_failures:
            result["status"] = "error"
        self._add("user", [{"toolResult": result}, *cache_points])

    def _assistant(self, message: AssistantMessage) -> Iterable[JsonValue]:
        for part in message.content:
            match part:
                case Text() | Refusal():
                    if part.text.strip():
                        yield {"text": part.text}
                        if isinstance(part, Text):
                            yield from self._content.cache_point(part.cache)
                case Reasoning():
                    block = _reasoning(part)
                    if block is not None:
                        yield block
                case ToolCall():
                    yield self._call(part)
                    yield from self._content.cache_point(part.cache)
                case MadeImage():
                    # Converse does not accept images that a model made; `keep_readable` has already
                    # removed them.
                    pass
                case _:
                    assert_never(part)

    def _call(self, call: ToolCall) -> JsonValue:
        self._calls.ask(call)
        use: JsonValue = {
            "toolUseId": fitting_id(call.id, _TOOL_USE_ID),
            "name": call.name,
            "input": arguments_object(call),
        }
        return {"toolUse": use}


def _reasoning(part: Reasoning) -> JsonValue:
    """Return the block that Bedrock sent; None for reasoning that has neither a signature nor
    hidden data.
    """
    match part.provenance:
        case Provenance(signature=str(signature)):
            return {
                "reasoningContent": {"reasoningText": {"text": part.text, "signature": signature}}
            }
        case Provenance(data=str(data)):
            hidden = base64.b64encode(data.encode(HIDDEN, errors="replace")).decode()
            return {"reasoningContent": {"redactedContent": hidden}}
        case _:
            return None
