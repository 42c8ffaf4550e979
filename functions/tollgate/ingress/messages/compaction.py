"""Compaction in Anthropic's format: the edit that asks for it, and its blocks.

Models other than Claude get what Claude does by itself: a block with the record of the
conversation, as text. https://platform.claude.com/docs/en/build-with-claude/compaction-threshold
(2026-11-28)
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from pydantic_core import to_json

from tollgate.core.compaction import FOREWORD, Compacted
from tollgate.core.content import (
    Document,
    Image,
    InlineMedia,
    Provenance,
    Reasoning,
    Text,
    ToolCall,
)
from tollgate.core.json_value import JsonObject, JsonValue
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    Message,
    SystemMessage,
    UserMessage,
)
from tollgate.core.signers import ANTHROPIC_BLOCKS
from tollgate.ingress.shared.media import field_refusal
from tollgate.ingress.shared.record_request import ask_for_record

MANAGEMENT: Final = "context_management"
WIRE_FORMAT: Final = "anthropic"
_EDIT: Final = "compact_20260112"
_TOKENS_MAX: Final = 150_000


class MessageWindow(Struct, frozen=True, kw_only=True):
    """Implements `ingress.base.RecordWindow` and `RecordPacker` for a request with a compact edit.

    The record covers the messages before the user's newest ones; with a pause, it covers all.
    """

    tokens_max: int
    pauses: bool
    instructions: str | None
    request: GenerationRequest
    kept: Sequence[JsonObject] = ()
    left_to: str | None = ANTHROPIC_BLOCKS

    @property
    def packer(self) -> "MessageWindow":
        """The window itself."""
        return self

    @property
    def covered(self) -> int:
        """The number of messages that the record covers."""
        messages = self.request.messages
        count = len(messages)
        while not self.pauses and count and isinstance(messages[count - 1], UserMessage):
            count -= 1
        return count

    def pack(self, compacted: Compacted, generation_id: str) -> Provenance:
        """Return the block with the record, as Claude writes it."""
        block = {"type": "compaction", "content": compacted.record}
        data = to_json(block).decode()
        return Provenance(signer=ANTHROPIC_BLOCKS, data=data, is_compaction=True)

    def ask(self) -> GenerationRequest:
        """Return the request for the record."""
        covered = replace(self.request, messages=self.request.messages[: self.covered])
        return ask_for_record(covered, self.instructions)

    def resume(self, compacted: Compacted) -> GenerationRequest:
        """Return the request for the answer, with the record in place of the covered messages."""
        messages = self.request.messages
        record = UserMessage(content=(Text(text=FOREWORD + compacted.record),))
        systems = (each for each in messages[: self.covered] if isinstance(each, SystemMessage))
        rest = (*systems, record, *messages[self.covered :])
        return with_messages(without_management(self.request), rest)


def watch_edits(management: JsonValue, request: GenerationRequest) -> MessageWindow | None:
    """Return the rule for compacting a conversation; None without such an edit or older messages.

    Raises RequestError if the edit's fields are not those of Anthropic's format.
    """
    edits = management.get("edits") if isinstance(management, Mapping) else None
    for number, edit in enumerate(edits if isinstance(edits, list) else ()):
        if isinstance(edit, Mapping) and edit.get("type") == _EDIT:
            window = _read_edit(edit, f"{MANAGEMENT}.edits[{number}]", request)
            return window if window.covered else None
    return None


def _read_edit(edit: JsonObject, path: str, request: GenerationRequest) -> MessageWindow:
    pauses, instructions = edit.get("pause_after_compaction"), edit.get("instructions")
    if not isinstance(pauses, bool | None):
        raise field_refusal(f"{path}.pause_after_compaction", "must be true or false")
    if not isinstance(instructions, str | None):
        raise field_refusal(f"{path}.instructions", "must be a string")
    match edit.get("trigger"):
        case None:
            tokens = _TOKENS_MAX
        case {"type": "input_tokens", "value": int(value)} if value is not True and value > 0:
            tokens = value
        case _:
            raise field_refusal(f"{path}.trigger", "must have type input_tokens and a value")
    return MessageWindow(
        tokens_max=tokens, pauses=bool(pauses), instructions=instructions, request=request
    )


def without_management(request: GenerationRequest) -> GenerationRequest:
    """Return the request without `context_management`, which the gateway has carried out."""
    if request.native is None:
        return request
    fields = {name: each for name, each in request.native.fields.items() if name != MANAGEMENT}
    return replace(request, native=replace(request.native, fields=fields))


def with_messages(request: GenerationRequest, messages: Sequence[Message]) -> GenerationRequest:
    """Return the request with other messages, and its size changed by the sizes of the parts."""
    change = _bytes_of(messages) - _bytes_of(request.messages)
    size_bytes = max(0, request.size_bytes + change)
    return replace(request, messages=tuple(messages), size_bytes=size_bytes)


def drop_compacted(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages from the last compaction block on, with all messages of the system.

    Anthropic drops the other messages too, so they must not count for limits.
    """
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        match message:
            case AssistantMessage():
                starts = [n for n, part in enumerate(message.content) if _is_compaction(part)]
                if starts:
                    systems = [it for it in messages[:place] if isinstance(it, SystemMessage)]
                    rest = replace(message, content=message.content[starts[-1] :])
                    return [*systems, rest, *messages[place + 1 :]]
            case _:
                pass
    return messages


def _is_compaction(part: object) -> bool:
    return (
        isinstance(part, Reasoning)
        and part.provenance is not None
        and part.provenance.is_compaction
    )


def _bytes_of(messages: Iterable[Message]) -> int:
    total = 0
    for message in messages:
        for part in message.content:
            match part:
                case (
                    Text(text=data)
                    | Reasoning(text=data)
                    | ToolCall(arguments=data)
                    | Image(source=InlineMedia(base64=data))
                    | Document(source=InlineMedia(base64=data))
                ):
                    total += len(data.encode(errors="replace"))
                case _:
                    pass
    return total
