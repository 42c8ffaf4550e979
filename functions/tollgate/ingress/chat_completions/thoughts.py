"""The reasoning of an assistant message that comes back, at its place among text and calls."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.content import Reasoning, Refusal, Text, ToolCall
from tollgate.core.reasoning_details import Detail, continues, join_piece, read_detail
from tollgate.core.signers import CLAUDE
from tollgate.ingress.chat_completions.wire import messages as wire


class PlacedThought(Struct, frozen=True):
    """Reasoning, and the calls and the characters of text before it."""

    reasoning: Reasoning
    calls: int = 0
    text_length: int = 0


def read_thoughts(message: wire.AssistantMessage) -> list[PlacedThought]:
    """Return the reasoning of a message: its details or, without any, its plain text."""
    details = message.reasoning_details or ()
    text = message.reasoning or message.reasoning_content
    if text and _is_remnant(details):
        details = ()
    thoughts = [
        PlacedThought(reasoning, after.calls, after.text)
        for detail, after in _join(details)
        if (reasoning := read_detail(detail)).text or _is_signed(reasoning)
    ]
    if not thoughts and text:
        thoughts.append(PlacedThought(Reasoning(text=text)))
    return thoughts


def _is_signed(reasoning: Reasoning) -> bool:
    return reasoning.provenance is not None and reasoning.provenance.is_signed


def _is_remnant(details: Sequence[wire.ReasoningDetail]) -> bool:
    """Return whether a client kept only the last piece of a stream, as OpenAI's for Node does.

    Claude signs each part, and takes none without those before it. Parts of others may be unsigned,
    and some clients leave those out.
    """
    if len(details) != 1:
        return False
    (last,) = details
    lacks_text = last.type == "reasoning.text" and last.text is None and last.data is None
    return lacks_text or (last.format == CLAUDE and bool(last.index))


def _join(details: Iterable[wire.ReasoningDetail]) -> Iterable[tuple[Detail, wire.Position]]:
    """Return whole details: some clients send the pieces of a stream back as they came."""
    joined: list[tuple[Detail, wire.Position]] = []
    for wire_detail in details:
        piece: Detail = wire_detail.model_dump(exclude_none=True, exclude={"after"})
        last, after = joined[-1] if joined else ({}, None)
        if after is not None and wire_detail.index is not None and continues(last, piece):
            joined[-1] = join_piece(last, piece), after
        else:
            joined.append((piece, wire_detail.after or wire.Position()))
    return joined


def place_thoughts(
    thoughts: Iterable[PlacedThought],
    visible: Iterable[Text | Refusal],
    calls: Sequence[ToolCall],
) -> Iterator[Text | Reasoning | Refusal | ToolCall]:
    """Yield the parts of a message in the order in which the model wrote them."""
    ordered = sorted(thoughts, key=lambda thought: (thought.calls, thought.text_length))
    waiting = deque(thought for thought in ordered if not thought.calls)
    length = 0
    for part in visible:
        rest = part
        while waiting and isinstance(rest, Text) and _lies_within(waiting[0], length, rest):
            thought = waiting.popleft()
            cut = max(thought.text_length - length, 0)
            if cut:
                # A cache mark ends the prompt up to it, so that it belongs to the last piece.
                yield Text(text=rest.text[:cut])
            yield thought.reasoning
            rest = replace(rest, text=rest.text[cut:])
            length += cut
        yield rest
        length += len(rest.text) if isinstance(rest, Text) else 0
    yield from (thought.reasoning for thought in waiting)
    waiting = deque(thought for thought in ordered if thought.calls)
    for number, call in enumerate(calls, start=1):
        yield call
        while waiting and waiting[0].calls <= number:
            yield waiting.popleft().reasoning
    yield from (thought.reasoning for thought in waiting)


def _lies_within(thought: PlacedThought, start: int, text: Text) -> bool:
    return thought.text_length < start + len(text.text)
