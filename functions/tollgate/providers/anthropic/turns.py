"""Messages as Anthropic wants them: results in one user turn right after calls, nothing empty.

Anthropic refuses empty text, calls without results and results without calls; text is left out
where it is empty, the others are the caller's error and named.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, assert_never

import pydantic_core
from pydantic import JsonValue

from tollgate.core.content import (
    Audio,
    CacheMark,
    Document,
    Image,
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
from tollgate.providers.anthropic import media
from tollgate.providers.dialect import ClaudeDialect

Block = dict[str, JsonValue]

_TOOL_USE_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,256}")
# What Anthropic's own tools did: the only other blocks that a caller may hand back as they came.
_OWN_TOOLS: Final = re.compile(r"server_tool_use|[a-z_]+_tool_result")
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})


@dataclass(slots=True)
class Turn:
    """One message of the wire."""

    role: Literal["user", "assistant", "system"]
    blocks: list[Block]

    @property
    def message(self) -> JsonValue:
        return {"role": self.role, "content": [*self.blocks]}


@dataclass(slots=True)
class Conversation:
    """What Anthropic takes as `system` and `messages`; `called` are the names of tools in it."""

    system: list[Block] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    called: list[str] = field(default_factory=list)

    @property
    def is_prefilled(self) -> bool:
        """Whether the model is to continue what it is said to have begun."""
        return self.turns[-1].role == "assistant"

    @property
    def has_lost_its_thoughts(self) -> bool:
        """Whether the last calls came back without the thoughts that led to them.

        Most clients drop what they do not know. A model that thinks by budget refuses to go on
        thinking then: "a final assistant message must start with a thinking block".
        """
        last = next((turn for turn in reversed(self.turns) if turn.role == "assistant"), None)
        if last is None or all(block["type"] != "tool_use" for block in last.blocks):
            return False
        return last.blocks[0]["type"] not in _THOUGHTS


def conversation(
    messages: Sequence[Message], claude: ClaudeDialect, *, fetches_urls: bool
) -> Conversation:
    """The messages as turns; RequestError for what this model can never take."""
    building = _Building(claude, fetches_urls)
    for message in messages:
        building.add(message)
    return building.finished()


def marked(block: Block, cache: CacheMark | None) -> Block:
    """The block, with a cache mark if it has one; five minutes are the default lifetime."""
    if cache is not None:
        lifetime: Block = {} if cache.lifetime == "5m" else {"ttl": cache.lifetime}
        block["cache_control"] = {"type": "ephemeral", **lifetime}
    return block


class _Building:
    def __init__(self, claude: ClaudeDialect, fetches_urls: bool) -> None:
        self._claude = claude
        self._fetches_urls = fetches_urls
        self._made = Conversation()
        self._unanswered: dict[str, None] = {}

    def add(self, message: Message) -> None:
        if isinstance(message, ToolMessage):
            self._add_result(message)
            return
        self._need_all_answered()
        match message:
            case SystemMessage():
                self._add_system([*_texts(message.content)])
            case UserMessage():
                self._add("user", [*self._user(message.content)])
            case AssistantMessage():
                self._add("assistant", self._assistant(message))
            case _:
                assert_never(message)

    def finished(self) -> Conversation:
        self._need_all_answered()
        if not self._made.turns:
            raise _refused("this model needs at least one message that is not empty")
        if self._made.is_prefilled and not self._claude.prefill:
            raise _refused("this model does not continue an assistant message: end with a user's")
        return self._made

    def _add(self, role: Literal["user", "assistant", "system"], blocks: list[Block]) -> None:
        """Join a run of user messages into one turn, which results and what follows them need."""
        turns = self._made.turns
        if role == "user" and turns and turns[-1].role == "user":
            turns[-1].blocks += blocks
        elif blocks:
            turns.append(Turn(role, blocks))

    def _add_system(self, blocks: list[Block]) -> None:
        if not self._made.turns:
            self._made.system += blocks
        elif self._claude.system_turns:
            self._add("system", blocks)
        else:
            # Moving it to the front would change what it is about.
            for block in blocks:
                block["text"] = f"<system>\n{block['text']}\n</system>"
            self._add("user", blocks)

    def _add_result(self, message: ToolMessage) -> None:
        if message.call_id not in self._unanswered:
            raise _refused(f"tool result {message.call_id!r} answers no open call")
        del self._unanswered[message.call_id]
        block: Block = {"type": "tool_result", "tool_use_id": _tool_use_id(message.call_id)}
        # A mark belongs on the result: what is inside of it is not cached apart.
        marks = [part.cache for part in message.content if part.cache is not None]
        content: list[JsonValue] = [
            {name: value for name, value in inner.items() if name != "cache_control"}
            for inner in self._user(message.content)
        ]
        if content:
            block["content"] = content
        self._add("user", [marked(block, marks[-1] if marks else None)])

    def _need_all_answered(self) -> None:
        if self._unanswered:
            missing = ", ".join(repr(id_) for id_ in self._unanswered)
            raise _refused(f"no tool result for the call {missing}")

    def _user(self, content: Iterable[UserContent | ResultContent]) -> Iterator[Block]:
        for part in content:
            match part:
                case Text():
                    yield from _texts((part,))
                case Image():
                    yield marked(media.image(part, fetches_urls=self._fetches_urls), part.cache)
                case Document():
                    yield marked(media.document(part, fetches_urls=self._fetches_urls), part.cache)
                case Audio():
                    raise _refused("input_audio: this model does not hear")
                case _:
                    assert_never(part)

    def _assistant(self, message: AssistantMessage) -> list[Block]:
        blocks: list[Block] = []
        for part in message.content:
            match part:
                case Text():
                    blocks += _texts((part,))
                case Refusal():
                    blocks += _texts((Text(text=part.text),))
                case Reasoning():
                    blocks += _thought(part)
                case ToolCall():
                    blocks.append(self._call(part))
                case _:
                    assert_never(part)
        # Formats with one slot for all thoughts cannot say where each of them stood.
        if blocks and blocks[0]["type"] not in _THOUGHTS:
            blocks.sort(key=lambda block: block["type"] not in _THOUGHTS)
        return blocks

    def _call(self, call: ToolCall) -> Block:
        if call.id in self._unanswered:
            raise _refused(f"two calls have the id {call.id!r}")
        self._unanswered[call.id] = None
        if call.name not in self._made.called:
            self._made.called.append(call.name)
        return {
            "type": "tool_use",
            "id": _tool_use_id(call.id),
            "name": call.name,
            "input": _arguments(call),
        }


def _arguments(call: ToolCall) -> JsonValue:
    """The object that the arguments are; whole numbers keep all their digits."""
    try:
        value: JsonValue = pydantic_core.from_json(call.arguments or "{}", allow_inf_nan=False)
    except ValueError as invalid:
        raise _refused(f"the arguments of call {call.id!r} are not JSON") from invalid
    if not isinstance(value, dict):
        raise _refused(f"the arguments of call {call.id!r} are not a JSON object")
    return value


def _thought(part: Reasoning) -> list[Block]:
    """The block as Anthropic gave it; it refuses thoughts that it has not signed."""
    match part.opaque.get("anthropic"):
        case {"signature": str(signature)}:
            return [{"type": "thinking", "thinking": part.text, "signature": signature}]
        case {"redacted_thinking": str(hidden)}:
            return [{"type": "redacted_thinking", "data": hidden}]
        case {"block": dict(block)} if _OWN_TOOLS.fullmatch(str(block.get("type"))):
            return [{**block}]
        case _:
            return []


def _texts(texts: Iterable[Text]) -> Iterator[Block]:
    for text in texts:
        if text.text.strip():
            yield marked({"type": "text", "text": text.text}, text.cache)


def _tool_use_id(id_: str) -> str:
    """The id, or one of the allowed form derived from it: the same for a call and its result."""
    if _TOOL_USE_ID.fullmatch(id_):
        return id_
    return f"call_{hashlib.sha256(id_.encode()).hexdigest()[:32]}"


def _refused(message: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, f"messages: {message}.", param="messages")
