"""Reasoning comes back whole and where it stood among text and calls, streamed or not.

Keeps C10, C37.
"""

from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chat_stream import accumulated, exact
from tests.strategies import names, signers
from tests.unit.ingress.requests import HELLO, understood
from tests.unit.ingress.samples import record, renderer
from tollgate.core.content import Provenance, Reasoning, Text, ToolCall
from tollgate.core.events import Ended, PartDelta, PartEnd, PartStart, Started, StreamEvent
from tollgate.core.response import Fold
from tollgate.core.usage import Usage

MODEL = "test/echo"
Written = Reasoning | Text | ToolCall

words = st.text(min_size=1, max_size=6)
shown = st.builds(
    Reasoning,
    text=words,
    provenance=st.builds(
        Provenance, signer=signers, signature=st.none() | words, is_summary=st.booleans()
    ),
)
hidden = st.builds(
    Reasoning, text=st.just(""), provenance=st.builds(Provenance, signer=signers, data=words)
)
thoughts = st.lists(shown | hidden, max_size=2)


@st.composite
def turns(draw: st.DrawFn) -> list[Written]:
    """Thoughts around pieces of text, then around calls: all that a chat message can hold."""
    written: list[Written] = draw(thoughts)
    for text in draw(st.lists(words, max_size=3)):
        written += [Text(text=text), *draw(thoughts)]
    for number, name in enumerate(draw(st.lists(names, max_size=3))):
        written += [ToolCall(id=f"c{number}", name=name, arguments="{}"), *draw(thoughts)]
    return written


def events_of(parts: list[Written]) -> list[StreamEvent]:
    events: list[StreamEvent] = [Started()]
    for index, part in enumerate(parts):
        match part:
            case ToolCall():
                said = part.arguments
                begun: Written = ToolCall(id=part.id, name=part.name, arguments="")
            case Text():
                said, begun = part.text, Text(text="")
            case _:
                said, begun = part.text, Reasoning(text="", provenance=part.provenance)
        events += [PartStart(index=index, part=begun), PartDelta(index=index, text=said)]
        events.append(PartEnd(index=index))
    return [*events, Ended(finish="stop")]


def joined(parts: list[Written] | tuple[Any, ...]) -> list[Written]:
    """The parts with neighbouring texts as one: a message has one text."""
    whole: list[Written] = []
    for part in parts:
        if isinstance(part, Text) and whole and isinstance(whole[-1], Text):
            whole[-1] = Text(text=whole[-1].text + part.text)
        elif part != Text(text=""):
            whole.append(part)
    return whole


def message_of(parts: list[Written], *, stream: bool) -> dict[str, Any]:
    writer, fold, frames = renderer(), Fold(), b""
    for event in events_of(parts):
        frames += writer.feed(event)
        fold.accept(event)
    written = record(usage=Usage())
    if stream:
        reply = accumulated(frames + writer.close(written))
    else:
        reply = exact(writer.whole([fold.response()], written))
    message: dict[str, Any] = reply["choices"][0]["message"]
    return message


@given(turns().filter(bool), st.booleans())
def test_c10_the_order_of_a_turn_survives_the_client(parts: list[Written], stream: bool) -> None:
    message = message_of(parts, stream=stream)
    for detail in message.get("reasoning_details", ()):
        assert detail.pop("model", MODEL) == MODEL
    back = understood(messages=[*HELLO, message]).request.messages[1].content
    assert joined(back) == joined(parts)


def test_c10_pieces_of_a_stream_come_back_as_the_details_they_make() -> None:
    piece = {"type": "reasoning.text", "index": 0}
    details = [
        piece | {"text": "", "format": "anthropic-claude-v1"},
        piece | {"text": "Let me "},
        piece | {"text": "see."},
        piece | {"signature": "c2ln"},
        {"type": "reasoning.encrypted", "index": 1, "format": "anthropic-claude-v1", "data": "b"},
    ]
    said = {"role": "assistant", "content": "So.", "reasoning_details": details}
    assert understood(messages=[*HELLO, said]).request.messages[1].content == (
        Reasoning(
            text="Let me see.",
            provenance=Provenance(signer="anthropic-claude-v1", signature="c2ln"),
        ),
        Reasoning(text="", provenance=Provenance(signer="anthropic-claude-v1", data="b")),
        Text(text="So."),
    )


@pytest.mark.parametrize("field", ["text", "summary"])
def test_pieces_of_reasoning_are_joined_once(field: str) -> None:
    piece = {"type": "reasoning.text", "index": 0, field: "b" * 2_000}
    began_s = process_time()
    said = {"role": "assistant", "reasoning_details": [piece] * 4_096}
    parsed = understood(messages=[*HELLO, said]).request.messages[1].content
    assert process_time() - began_s < 1
    assert parsed == (Reasoning(text="b" * 2_000 * 4_096),)


def test_a_text_is_cut_once_at_each_place_of_reasoning() -> None:
    places = range(4_096)
    details = [{"type": "reasoning.text", "text": "b", "after": {"text": it}} for it in places]
    began_s = process_time()
    said = {"role": "assistant", "content": "a" * 8_000_000, "reasoning_details": details}
    parsed = understood(messages=[*HELLO, said]).request.messages[1].content
    assert process_time() - began_s < 1
    assert parsed[-1] == Text(text="a" * (8_000_000 - 4_095))
