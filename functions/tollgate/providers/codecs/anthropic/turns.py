"""Encodes the history as Anthropic's turns, with all results of a turn's calls in the next turn.

Anthropic refuses empty text, calls without results and results without calls. The encoder leaves
out empty text, and raises a RequestError that names the call if calls and results do not match.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, assert_never

import pydantic_core
from msgspec import Struct, field

from tollgate.core.content import (
    Audio,
    CacheMark,
    Document,
    Image,
    MadeImage,
    Provenance,
    Reasoning,
    Refusal,
    ResultContent,
    Text,
    ToolCall,
    UserContent,
)
from tollgate.core.errors import ErrorCode
from tollgate.core.json_value import JsonValue
from tollgate.core.request import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from tollgate.core.signers import ANTHROPIC_BLOCKS, UNKNOWN_DELTAS
from tollgate.core.unknown_fields import add_unknown
from tollgate.providers.codecs.anthropic import media
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.shared.tool_history import OpenCalls, arguments_object, fitting_id, refuse

Block = dict[str, JsonValue]

_TOOL_USE_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,256}")
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})
# Types of blocks that the gateway encodes itself. Blocks that are forwarded undecoded must have
# another type, because such a type could hide a document or a result from the gateway's checks.
_ENCODED: Final = _THOUGHTS | {
    "document",
    "image",
    "search_result",
    "text",
    "tool_result",
    "tool_use",
}


class Turn(Struct):
    """One message of the request."""

    role: Literal["user", "assistant", "system"]
    blocks: list[Block]
    native: Block = field(default_factory=dict)
    """Unknown fields of the message."""

    @property
    def message(self) -> JsonValue:
        return add_unknown({"role": self.role, "content": [*self.blocks]}, self.native)


class Conversation(Struct):
    """The values of `system` and `messages`, and the names of the tools that were called."""

    system: list[Block] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    called: list[str] = field(default_factory=list)

    @property
    def is_prefilled(self) -> bool:
        """True if the model must continue a last message of the assistant.

        A message whose last block belongs to one of Anthropic's own tools is a paused turn instead.
        """
        last = self.turns[-1]
        return last.role == "assistant" and not _is_of_own_tool(last.blocks[-1])

    @property
    def has_lost_its_thoughts(self) -> bool:
        """True if the caller sent the last calls back without the thoughts that led to the calls.

        Most clients drop unknown fields. A model that thinks with a token budget then refuses to
        continue: "a final assistant message must start with a thinking block".
        """
        last = next((turn for turn in reversed(self.turns) if turn.role == "assistant"), None)
        if last is None or all(block["type"] != "tool_use" for block in last.blocks):
            return False
        return last.blocks[0]["type"] not in _THOUGHTS


def conversation(
    messages: Sequence[Message], dialect: Dialect, *, has_unknown: bool = False
) -> Conversation:
    """Return the messages as turns; raise RequestError if the model can never accept them.

    With `has_unknown`, the turns include unknown fields of messages and parts.
    """
    building = _Building(dialect, has_unknown=has_unknown)
    for message in messages:
        building.add(message)
    return building.finish()


def _is_of_own_tool(block: Block) -> bool:
    type_ = str(block["type"])
    return type_ == "server_tool_use" or type_.endswith("_tool_result")


def add_mark(block: Block, cache: CacheMark | None) -> Block:
    """Return the block with its cache mark, if any; the default lifetime is 5 minutes."""
    if cache is not None:
        lifetime: Block = {} if cache.lifetime == "5m" else {"ttl": cache.lifetime}
        block["cache_control"] = {"type": "ephemeral", **lifetime}
    return block


class _Building:
    def __init__(self, dialect: Dialect, *, has_unknown: bool) -> None:
        self._has_unknown = has_unknown
        self._claude = dialect.claude
        self._fetches = dialect.fetches_urls
        self._history = Conversation()
        self._calls = OpenCalls()

    def add(self, message: Message) -> None:
        if isinstance(message, ToolMessage):
            self._add_result(message)
            return
        self._calls.need_none()
        match message:
            case SystemMessage():
                self._add_system([*self._texts(message.content)])
            case UserMessage():
                self._add("user", [*self._user(message.content)])
            case AssistantMessage():
                self._add("assistant", self._assistant(message))
            case _:
                assert_never(message)
        if message.native and self._has_unknown and self._history.turns:
            self._history.turns[-1].native |= message.native

    def finish(self) -> Conversation:
        self._calls.need_none()
        if not self._history.turns:
            refuse("this model needs at least one message that is not empty")
        if self._history.is_prefilled and not self._claude.prefill:
            refuse("this model cannot continue an assistant message: end with a user message")
        self._history.called = self._calls.called
        return self._history

    def _add(self, role: Literal["user", "assistant", "system"], blocks: list[Block]) -> None:
        """Add a turn; extend the last turn if both are user turns, because results must share one
        turn.
        """
        turns = self._history.turns
        if role == "user" and turns and turns[-1].role == "user":
            turns[-1].blocks += blocks
        elif blocks:
            turns.append(Turn(role, blocks))

    def _add_system(self, blocks: list[Block]) -> None:
        if not self._history.turns:
            self._history.system += blocks
        elif self._claude.system_turns:
            self._add("system", blocks)
        else:
            # A later system message stays where it is, because its position is part of its meaning.
            for block in blocks:
                block["text"] = f"<system>\n{block['text']}\n</system>"
            self._add("user", blocks)

    def _add_result(self, message: ToolMessage) -> None:
        self._calls.answer(message)
        block: Block = {
            "type": "tool_result",
            "tool_use_id": fitting_id(message.call_id, _TOOL_USE_ID),
        }
        # Anthropic accepts no cache mark on the parts of a result, so the result gets the last
        # mark.
        marks = [part.cache for part in message.content if part.cache is not None]
        content: list[JsonValue] = [
            {name: value for name, value in inner.items() if name != "cache_control"}
            for inner in self._user(message.content)
        ]
        if content:
            block["content"] = content
        if message.failed:
            block["is_error"] = True
        if message.native and self._has_unknown:
            block = add_unknown(block, message.native)
        self._add("user", [add_mark(block, marks[-1] if marks else None)])

    def _user(self, content: Iterable[UserContent | ResultContent]) -> Iterator[Block]:
        for part in content:
            match part:
                case Text():
                    yield from self._texts((part,))
                case Image():
                    yield self._finished(media.image(part, self._fetches), part)
                case Document():
                    yield self._finished(media.document(part, self._fetches), part)
                case Audio():
                    refuse(
                        "input_audio: this model does not accept audio",
                        ErrorCode.AUDIO_NOT_SUPPORTED,
                    )
                case _:
                    assert_never(part)

    def _assistant(self, message: AssistantMessage) -> list[Block]:
        blocks: list[Block] = []
        for part in message.content:
            match part:
                case Text():
                    blocks += self._texts((part,))
                case Refusal():
                    blocks += self._texts((Text(text=part.text),))
                case Reasoning():
                    blocks += _thought(part)
                case ToolCall():
                    blocks.append(self._call(part))
                case MadeImage():
                    # `keep_readable` has removed generated images, which Claude cannot read.
                    pass
                case _:
                    assert_never(part)
        return blocks

    def _call(self, call: ToolCall) -> Block:
        self._calls.ask(call)
        block: Block = {
            "type": "tool_use",
            "id": fitting_id(call.id, _TOOL_USE_ID),
            "name": call.name,
            "input": arguments_object(call),
        }
        return self._finished(block, call)

    def _texts(self, texts: Iterable[Text]) -> Iterator[Block]:
        for text in texts:
            if text.text.strip():
                yield self._finished({"type": "text", "text": text.text}, text)

    def _finished(self, block: Block, part: Text | Image | Document | ToolCall) -> Block:
        """Return a block with its part's unknown fields and cache mark."""
        if part.native and self._has_unknown:
            block = add_unknown(block, part.native)
        return add_mark(block, part.cache)


def _thought(part: Reasoning) -> list[Block]:
    """Return the block that Anthropic sent; no block for reasoning that is not Anthropic's."""
    match part.provenance:
        case Provenance(signer=signer, data=str(data)) if signer == ANTHROPIC_BLOCKS:
            return _own_block(data)
        case Provenance(signature=str(signature)):
            return [{"type": "thinking", "thinking": part.text, "signature": signature}]
        case Provenance(data=str(hidden)):
            return [{"type": "redacted_thinking", "data": hidden}]
        case _:
            return []


def _own_block(data: str) -> list[Block]:
    try:
        block = pydantic_core.from_json(data)
    except ValueError:
        return []
    if not isinstance(block, dict) or block.get("type") in _ENCODED:
        return []
    block.pop(UNKNOWN_DELTAS, None)
    return [block]
