"""Parses reasoning that clients send back, and restores its order among text and calls."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.content import Provenance, Reasoning, Refusal, Text, ToolCall
from tollgate.core.reasoning_details import Detail, JoinedDetail, read_detail
from tollgate.core.signers import CLAUDE
from tollgate.ingress.chat_completions.wire import messages as wire
from tollgate.ingress.shared.signatures import Packed, is_packed, unpack


class PlacedThought(Struct, frozen=True):
    """Reasoning, and its position in the answer."""

    reasoning: Reasoning
    calls: int = 0
    """The number of calls before the reasoning."""
    text_length: int = 0
    """The number of characters of text before the reasoning."""
    runs: int = 0
    """The number of server tool runs before the reasoning."""


def read_thoughts(message: wire.AssistantMessage) -> list[PlacedThought]:
    """Return the reasoning in a message: its details, or the plain text if there are none."""
    details = message.reasoning_details or ()
    text = message.reasoning or message.reasoning_content
    if text and _is_remnant(details):
        details = ()
    thoughts = [
        PlacedThought(reasoning, after.calls, after.text, after.runs)
        for detail, after in _join(details)
        if (reasoning := _reasoning(detail)).text or _is_signed(reasoning)
    ]
    if not thoughts and text:
        thoughts.append(PlacedThought(Reasoning(text=text)))
    return thoughts


def proofs_of_calls(message: wire.AssistantMessage) -> Iterator[tuple[str, Provenance]]:
    """Yield the ids of calls, with the signer's data that other formats packed into details."""
    for detail in message.reasoning_details or ():
        for packed in _unpacked(detail.signature or detail.data):
            if packed is not None and packed.call_id is not None:
                yield packed.call_id, packed.provenance


def _reasoning(detail: Detail) -> Reasoning:
    """Return a detail as reasoning; if another format packed the signer's data, unpack the data."""
    reasoning = read_detail(detail)
    provenance = reasoning.provenance
    for packed in _unpacked(
        None if provenance is None else provenance.signature or provenance.data
    ):
        is_own = packed is not None and packed.call_id is None
        return replace(reasoning, provenance=packed.provenance if packed and is_own else None)
    return reasoning


def _unpacked(proof: str | None) -> Iterator[Packed | None]:
    """Yield the data in a packed signature, or None if it is damaged; yield nothing for other
    signatures.
    """
    if not proof:
        return
    if is_packed(proof):
        yield unpack(proof)


def _is_signed(reasoning: Reasoning) -> bool:
    return reasoning.provenance is not None and reasoning.provenance.is_signed


def _is_remnant(details: Sequence[wire.ReasoningDetail]) -> bool:
    """Return True if a client kept only the last streamed piece, as OpenAI's SDK for Node does.

    A single detail is such a remnant if its text is missing, or if Claude signed it and its index
    is above 0: Claude signs every part, and refuses a part without the earlier ones. For other
    signers, earlier parts may be unsigned, and some clients omit unsigned parts.
    """
    if len(details) != 1:
        return False
    (last,) = details
    lacks_text = last.type == "reasoning.text" and last.text is None and last.data is None
    return lacks_text or (last.format == CLAUDE and bool(last.index))


def _join(details: Iterable[wire.ReasoningDetail]) -> Iterable[tuple[Detail, wire.Position]]:
    """Return complete details, because some clients send the streamed pieces back separately."""
    joined: list[tuple[JoinedDetail, wire.Position]] = []
    for wire_detail in details:
        piece: Detail = wire_detail.model_dump(exclude_none=True, exclude={"after"})
        is_piece = joined and wire_detail.index is not None and joined[-1][0].is_continued_by(piece)
        if not is_piece:
            joined.append((JoinedDetail(), wire_detail.after or wire.Position()))
        joined[-1][0].add(piece)
    return [(detail.join(), after) for detail, after in joined]


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
        if isinstance(part, Text):
            yield from _interleave(part, length, waiting)
            length += len(part.text)
        else:
            yield part
    yield from (thought.reasoning for thought in waiting)
    waiting = deque(thought for thought in ordered if thought.calls)
    for number, call in enumerate(calls, start=1):
        yield call
        while waiting and waiting[0].calls <= number:
            yield waiting.popleft().reasoning
    yield from (thought.reasoning for thought in waiting)


def _interleave(
    part: Text, start: int, waiting: deque[PlacedThought]
) -> Iterator[Text | Reasoning]:
    """Yield a text part, split where reasoning occurred; `start` is the part's position."""
    end, at = start + len(part.text), start
    while waiting and waiting[0].text_length < end:
        thought = waiting.popleft()
        cut = max(thought.text_length, at)
        if cut > at:
            # The prompt is cached up to the end of a marked part, so the last piece gets the mark.
            yield Text(text=part.text[at - start : cut - start])
        yield thought.reasoning
        at = cut
    yield replace(part, text=part.text[at - start :])
