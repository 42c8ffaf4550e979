"""Clears old tool uses and old thinking from conversations, as Claude's API does by itself.

https://platform.claude.com/docs/en/build-with-claude/context-editing (2026-11-28)
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.content import Reasoning, Text, ToolCall
from tollgate.core.events import UnknownFields
from tollgate.core.json_value import JsonObject, JsonValue
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    Message,
    ToolMessage,
    UserMessage,
)
from tollgate.core.signers import ANTHROPIC_BLOCKS
from tollgate.ingress.base import EditContext, EditedContext, MeasurePrompt
from tollgate.ingress.messages.compaction import (
    MANAGEMENT,
    WIRE_FORMAT,
    with_messages,
    without_management,
)
from tollgate.ingress.shared.media import field_refusal

_TOOL_USES: Final = "clear_tool_uses_20250919"
_THINKING: Final = "clear_thinking_20251015"
_PLACEHOLDER: Final = "[The result of this tool call was removed to save space.]"


class _Edit(Struct, frozen=True, kw_only=True):
    """One edit; `keep` counts the newest tool uses, or the newest answers with thinking."""

    type: str
    keep: int
    trigger: tuple[str, int] = ("input_tokens", 0)
    tokens_min: int = 0
    excluded: frozenset[str] = frozenset()
    inputs: frozenset[str] | bool = False
    """The tools whose calls lose their arguments as well; True for all."""


def read_clearing(management: JsonValue) -> EditContext | None:
    """Return the edits that clear tool uses or thinking; None if there are none.

    Raises RequestError if the fields of an edit are not those of Anthropic's format.
    """
    edits: list[_Edit] = []
    listed = management.get("edits") if isinstance(management, Mapping) else None
    for number, edit in enumerate(listed if isinstance(listed, list) else ()):
        path = f"{MANAGEMENT}.edits[{number}]"
        if not isinstance(edit, dict) or edit.get("type") not in (_TOOL_USES, _THINKING):
            continue
        if edits and (edit["type"] == _THINKING or edits[-1].type == _TOOL_USES):
            raise field_refusal(f"{path}.type", f"must occur once, {_THINKING} first")
        if edit["type"] == _TOOL_USES:
            edits.append(_read_tool_uses(edit, path))
        elif edit.get("keep") != "all" and edit.get("keep") != {"type": "all"}:
            _, keep = _read_count(edit, "keep", path, thinking_turns=1, least=1)
            edits.append(_Edit(type=_THINKING, keep=keep))
    return partial(_apply, edits) if edits else None


def _read_tool_uses(edit: JsonObject, path: str) -> _Edit:
    inputs = edit.get("clear_tool_inputs")
    are_named = not isinstance(inputs, bool)
    return _Edit(
        type=_TOOL_USES,
        keep=_read_count(edit, "keep", path, tool_uses=3)[1],
        trigger=_read_count(edit, "trigger", path, input_tokens=100_000, tool_uses=0, least=1),
        tokens_min=_read_count(edit, "clear_at_least", path, input_tokens=0)[1],
        excluded=_read_names(edit, "exclude_tools", path),
        inputs=_read_names(edit, "clear_tool_inputs", path) if are_named else inputs is True,
    )


def _read_count(
    edit: JsonObject, name: str, path: str, *, least: int = 0, **types: int
) -> tuple[str, int]:
    """Return the type and the number of a field; the default is the first of the types."""
    match edit.get(name):
        case None:
            return next(iter(types.items()))
        case {"type": str(type_), "value": int(value)} if (
            type_ in types and value >= least and not isinstance(value, bool)
        ):
            return type_, value
    what = f"must have the type {' or '.join(types)} and a value of at least {least}"
    raise field_refusal(f"{path}.{name}", what)


def _read_names(edit: JsonObject, name: str, path: str) -> frozenset[str]:
    names = [] if edit.get(name) is None else edit[name]
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise field_refusal(f"{path}.{name}", "must be an array of names of tools")
    return frozenset(map(str, names))


def _apply(
    edits: Sequence[_Edit], request: GenerationRequest, measure: MeasurePrompt
) -> EditedContext | None:
    """Return the request after the edits, in their order; None if nothing is cleared."""
    applied: list[JsonValue] = []
    for edit in edits:
        before = measure(request)
        if edit.type == _TOOL_USES:
            kind, (cleared, messages) = "tool_uses", _clear(edit, request.messages, before)
        else:
            kind, (cleared, messages) = "thinking_turns", _forget(edit.keep, request.messages)
        edited = with_messages(request, messages)
        tokens = max(0, before - measure(edited))
        if cleared and tokens >= edit.tokens_min:
            counts = {f"cleared_{kind}": cleared, "cleared_input_tokens": tokens}
            applied.append({"type": edit.type, **counts})
            request = edited
    if not applied:
        return None
    fields: JsonObject = {MANAGEMENT: {"applied_edits": applied}}
    report = UnknownFields(wire_format=WIRE_FORMAT, place="message_delta", fields=fields)
    shortened = without_management(request)
    return EditedContext(request=shortened, report=report, left_to=ANTHROPIC_BLOCKS)


def _clear(edit: _Edit, messages: Sequence[Message], tokens: int) -> tuple[int, Sequence[Message]]:
    """Return the number of cleared tool uses, and the messages after the clearing."""
    uses, (unit, most) = list(_uses(messages)), edit.trigger
    if (tokens if unit == "input_tokens" else len(uses)) <= most:
        return 0, messages
    old = uses[: max(0, len(uses) - edit.keep)]
    cleared = {place: call for place, call in old if call.name not in edit.excluded}
    # Calls are compared by identity, because a client may use an id again after its result.
    calls = {
        id(call)
        for call in cleared.values()
        if edit.inputs is True or (edit.inputs and call.name in edit.inputs)
    }
    numbered = enumerate(messages)
    return len(cleared), [_cleared(each, place in cleared, calls) for place, each in numbered]


def _uses(messages: Sequence[Message]) -> Iterator[tuple[int, ToolCall]]:
    """Yield the position of each result, and its call."""
    calls: dict[str, ToolCall] = {}
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            calls |= {part.id: part for part in message.content if isinstance(part, ToolCall)}
        elif isinstance(message, ToolMessage) and message.call_id in calls:
            yield place, calls[message.call_id]


def _cleared(message: Message, is_old: bool, calls: set[int]) -> Message:
    if isinstance(message, ToolMessage) and is_old:
        mark = next((part.cache for part in message.content if part.cache), None)
        return replace(message, content=(Text(text=_PLACEHOLDER, cache=mark),))
    if not isinstance(message, AssistantMessage):
        return message
    content = (
        # A provider's signature of a call may cover the arguments.
        replace(part, arguments="{}")
        if isinstance(part, ToolCall) and id(part) in calls and part.provenance is None
        else part
        for part in message.content
    )
    return replace(message, content=tuple(content))


def _forget(keep: int, messages: Sequence[Message]) -> tuple[int, Sequence[Message]]:
    """Return the number of answers that lose their thinking, and the messages without it.

    An answer includes tool calls and results, and ends with the user's next message.
    """
    turns = list(accumulate(int(isinstance(each, UserMessage)) for each in messages))
    numbered = list(zip(turns, messages, strict=True))
    thinking = {turn for turn, each in numbered if any(map(_is_thought, each.content))}
    old = set(sorted(thinking)[:-keep])
    left = (_without_thoughts(each) if turn in old else each for turn, each in numbered)
    return len(old), [each for each in left if each.content or isinstance(each, ToolMessage)]


def _without_thoughts(message: Message) -> Message:
    if not isinstance(message, AssistantMessage):
        return message
    return replace(message, content=tuple(p for p in message.content if not _is_thought(p)))


def _is_thought(part: object) -> bool:
    """Return False also for compactions and other blocks that only Claude reads."""
    return isinstance(part, Reasoning) and not (
        part.provenance is not None and part.provenance.signer == ANTHROPIC_BLOCKS
    )
