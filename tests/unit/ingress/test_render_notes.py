"""C25, C31: log probabilities, citations, choices, and thoughts that are left out.

Keeps C14, C17, C25, C73.
"""

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.chat_stream import accumulated, exact, frames
from tests.unit.ingress.samples import EPISODE_ID, SERVED, chat_completions, record
from tollgate.core.content import Part, Provenance, Reasoning, Refusal, Text
from tollgate.core.events import (
    Citation,
    Ended,
    LogProbs,
    PartDelta,
    PartEnd,
    PartNote,
    PartStart,
    Started,
    StreamEvent,
)
from tollgate.core.request import GenerationRequest, ReasoningOptions
from tollgate.core.response import Fold
from tollgate.ingress.base import ParsedCall
from tollgate.ingress.chat_completions.render import ChatRenderer

STOP = Ended(finish="stop")
HI: dict[str, Any] = {
    "token": "hi",
    "logprob": -0.5,
    "bytes": [104, 105],
    "top_logprobs": [{"token": "ho", "logprob": -1.5, "bytes": None}],
}
BARE: dict[str, Any] = {"token": "hi", "logprob": -0.5}


def renderer(**options: Any) -> ChatRenderer:
    request = GenerationRequest(model="test/echo", messages=(), **options)
    call = ParsedCall(request=request, stream=True, episode_id=EPISODE_ID)
    return chat_completions().renderer(call, SERVED, credits_per_usd=Decimal(1))


def said(index: int, part: Part, *pieces: str | Citation | LogProbs) -> list[StreamEvent]:
    events: list[StreamEvent] = [PartStart(index=index, part=part)]
    for piece in pieces:
        if isinstance(piece, str):
            events.append(PartDelta(index=index, text=piece))
        else:
            events.append(PartNote(index=index, note=piece))
    return [*events, PartEnd(index=index)]


def whole(*choices: list[StreamEvent], **options: Any) -> dict[str, Any]:
    """The whole reply, which is what the stream accumulates to."""
    writer = renderer(choices=len(choices), **options)
    folds = [Fold() for _ in choices]
    stream = b""
    for number, events in enumerate(choices):
        for event in (Started(), *events, STOP):
            stream += writer.feed(event, number)
            folds[number].accept(event)
    written = record()
    reply = renderer(choices=len(choices), **options).whole(
        [fold.response() for fold in folds], written
    )
    assert accumulated(stream + writer.close(written)) == exact(reply)
    found: dict[str, Any] = json.loads(reply)
    return found


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (Text(text=""), {"content": [HI], "refusal": None}),
        (Refusal(text=""), {"content": None, "refusal": [HI]}),
    ],
)
def test_c25_log_probabilities_are_told_of_text_and_of_refusals(
    part: Part, told: dict[str, Any]
) -> None:
    reply = whole(said(0, part, "hi", LogProbs(entries=(HI,))))
    assert reply["choices"][0]["logprobs"] == told


def test_c25_log_probabilities_have_every_field_that_clients_read() -> None:
    reply = whole(said(0, Text(text=""), "hi", LogProbs(entries=(BARE,))))
    (entry,) = reply["choices"][0]["logprobs"]["content"]
    assert entry == {**BARE, "bytes": None, "top_logprobs": []}


def test_c25_log_probabilities_are_null_when_absent() -> None:
    assert whole(said(0, Text(text=""), "hi"))["choices"][0]["logprobs"] is None


def test_c73_citations_are_annotations_of_the_content() -> None:
    source = Citation(url="https://example.com/", title="A page", start=1, end=3)
    events = [*said(0, Text(text=""), "four"), *said(1, Text(text=""), "five", source)]
    message = whole(events)["choices"][0]["message"]
    assert message["annotations"] == [
        {
            "type": "url_citation",
            "url_citation": {
                "url": "https://example.com/",
                "title": "A page",
                "start_index": 5,
                "end_index": 7,
            },
        }
    ]
    assert message["content"] == "fourfive"


def test_c73_a_citation_of_nothing_in_particular_has_every_field() -> None:
    message = whole(said(0, Text(text=""), Citation(url="https://example.com/"), "hi"))
    (annotation,) = message["choices"][0]["message"]["annotations"]
    assert annotation["url_citation"] == {
        "url": "https://example.com/",
        "title": "https://example.com/",
        "start_index": 0,
        "end_index": 0,
    }


def test_c14_choices_are_numbered_and_keep_their_parts_apart() -> None:
    reply = whole(
        said(0, Text(text=""), "one"),
        [*said(0, Reasoning(text=""), "hm"), *said(1, Text(text=""), "two")],
    )
    assert [choice["index"] for choice in reply["choices"]] == [0, 1]
    assert [choice["message"]["content"] for choice in reply["choices"]] == ["one", "two"]
    assert "reasoning" not in reply["choices"][0]["message"]
    assert reply["choices"][1]["message"]["reasoning"] == "hm"


def test_c17_thoughts_are_left_out_where_that_is_asked() -> None:
    events = [
        *said(0, Reasoning(text="", provenance=Provenance(signer="p", signature="s")), "hm"),
        *said(1, Text(text=""), "hi"),
    ]
    reply = whole(events, reasoning=ReasoningOptions(exclude=True))
    message = reply["choices"][0]["message"]
    assert message == {"role": "assistant", "content": "hi", "refusal": None}
    writer = renderer(reasoning=ReasoningOptions(exclude=True))
    stream = b"".join(writer.feed(event) for event in (Started(), *events, STOP))
    assert len(frames(stream + writer.close(record()))) == 4
