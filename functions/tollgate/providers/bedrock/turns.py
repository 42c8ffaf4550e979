"""Messages as Converse wants them: system apart, roles alternating, results right after calls.

Converse refuses empty text, calls without results and results without calls; text is left out
where it is empty, the others are the caller's error and named.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, assert_never

import pydantic_core
from pydantic import JsonValue

from tollgate.core.content import Reasoning, Refusal, Text, ToolCall
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.request import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from tollgate.providers.bedrock.content import Blocks

_EMPTY_RESULT: Final = "(no output)"
_TOOL_USE_ID: Final = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")


@dataclass(slots=True)
class Conversation:
    """What Converse takes as `system` and `messages`; `called` are the names of tools in it."""

    system: list[JsonValue] = field(default_factory=list)
    turns: list[JsonValue] = field(default_factory=list)
    called: list[str] = field(default_factory=list)


def conversation(messages: Sequence[Message], blocks: Blocks) -> Conversation:
    """The messages as turns; RequestError for what Converse can never take."""
    building = _Building(blocks)
    for message in messages:
        building.add(message)
    return building.finished()


class _Building:
    def __init__(self, content: Blocks) -> None:
        self._content = content
        self._made = Conversation()
        self._role: Literal["user", "assistant"] | None = None
        self._blocks: list[JsonValue] = []
        self._unanswered: dict[str, None] = {}

    def add(self, message: Message) -> None:
        if isinstance(message, ToolMessage):
            self._add_result(message)
            return
        self._need_all_answered()
        match message:
            case SystemMessage() if self._role is None:
                self._made.system += self._content.texts(message.content)
            case SystemMessage():
                # Moving it to the front would change what it is about.
                marked = (f"<system>\n{text.text}\n</system>" for text in _spoken(message.content))
                self._add("user", [{"text": text} for text in marked])
            case UserMessage():
                self._add("user", self._content.spoken(message.content))
            case AssistantMessage():
                self._add("assistant", [*self._assistant(message)])
            case _:
                assert_never(message)

    def finished(self) -> Conversation:
        self._need_all_answered()
        self._end_turn()
        if not self._made.turns:
            raise _refused("messages: this model needs at least one message that is not empty")
        return self._made

    def _add(self, role: Literal["user", "assistant"], blocks: list[JsonValue]) -> None:
        """Join a run of one role into one turn."""
        if not blocks:
            return
        if role != self._role:
            self._end_turn()
            self._role = role
        self._blocks += blocks

    def _end_turn(self) -> None:
        if self._role is not None:
            self._made.turns.append({"role": self._role, "content": self._blocks})
        self._blocks = []

    def _add_result(self, message: ToolMessage) -> None:
        if message.call_id not in self._unanswered:
            raise _refused(f"messages: tool result {message.call_id!r} answers no open call")
        del self._unanswered[message.call_id]
        content, cache_points = self._content.returned(message.content)
        result: JsonValue = {
            "toolUseId": _tool_use_id(message.call_id),
            "content": content or [{"text": _EMPTY_RESULT}],
        }
        self._add("user", [{"toolResult": result}, *cache_points])

    def _need_all_answered(self) -> None:
        if self._unanswered:
            missing = ", ".join(repr(id_) for id_ in self._unanswered)
            raise _refused(f"messages: no tool result for the call {missing}")

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
                case _:
                    assert_never(part)

    def _call(self, call: ToolCall) -> JsonValue:
        if call.id in self._unanswered:
            raise _refused(f"messages: two calls have the id {call.id!r}")
        self._unanswered[call.id] = None
        if call.name not in self._made.called:
            self._made.called.append(call.name)
        use: JsonValue = {
            "toolUseId": _tool_use_id(call.id),
            "name": call.name,
            "input": _arguments(call),
        }
        return {"toolUse": use}


def _arguments(call: ToolCall) -> JsonValue:
    """The object that the arguments are; whole numbers keep all their digits."""
    try:
        value: JsonValue = pydantic_core.from_json(call.arguments or "{}", allow_inf_nan=False)
    except ValueError as invalid:
        raise _refused(f"messages: the arguments of call {call.id!r} are not JSON") from invalid
    if not isinstance(value, dict):
        raise _refused(f"messages: the arguments of call {call.id!r} are not a JSON object")
    return value


def _reasoning(part: Reasoning) -> JsonValue:
    """The block as Bedrock gave it; it refuses reasoning that it has not signed."""
    kept = part.opaque.get("bedrock")
    if not isinstance(kept, dict):
        return None
    hidden, signature = kept.get("redactedContent"), kept.get("signature")
    if isinstance(hidden, str):
        return {"reasoningContent": {"redactedContent": hidden}}
    if isinstance(signature, str):
        return {"reasoningContent": {"reasoningText": {"text": part.text, "signature": signature}}}
    return None


def _tool_use_id(id_: str) -> str:
    """The id, or one of the allowed form derived from it: the same for a call and its result."""
    if _TOOL_USE_ID.fullmatch(id_):
        return id_
    return f"call_{hashlib.sha256(id_.encode()).hexdigest()[:32]}"


def _spoken(texts: Iterable[Text]) -> list[Text]:
    return [text for text in texts if text.text.strip()]


def _refused(message: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, message, param="messages")
