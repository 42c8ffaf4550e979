"""What comes beside text: probabilities, sources, signatures, other choices. All synthetic.

Keeps C13, C14.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.providers.decoding import decoded, folded, sse_frames
from tests.upstream.openai_chunks import DONE, call_delta, chunk, sse, usage
from tollgate.core.content import Provenance, Reasoning, Text, ToolCall
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.events import Citation, LogProbs, PartDelta, PartNote, StreamEvent
from tollgate.core.response import GenerationResponse
from tollgate.core.signers import GEMINI
from tollgate.providers.codecs.openai_chat.decode import ChatDecoder
from tollgate.providers.ports.base import Frame
from tollgate.providers.shared.openai_choices import ChoiceDemultiplexer

FINISHED = [sse(chunk({}, finish="stop")), DONE]


def events_of(chunks: Sequence[bytes]) -> list[StreamEvent]:
    return decoded(ChatDecoder("acme"), sse_frames([*chunks, *FINISHED]))


def answer(*chunks: bytes) -> GenerationResponse:
    return folded(events_of(chunks))


def entry(token: str) -> dict[str, Any]:
    return {"token": token, "logprob": -0.5, "bytes": [1], "top_logprobs": []}


def piece(delta: dict[str, Any], **choice: Any) -> bytes:
    body = chunk(delta)
    body["choices"][0] |= choice
    return sse(body)


def test_c13_log_probabilities_follow_their_text() -> None:
    events = events_of(
        [
            piece({"content": ""}, logprobs={"content": [], "refusal": None}),
            piece({"content": "Hi"}, logprobs={"content": [entry("Hi")]}),
            piece({"content": " you"}, logprobs={"content": [entry(" you")], "refusal": []}),
        ]
    )
    told = [event for event in events if isinstance(event, PartDelta | PartNote)]
    assert told == [
        PartDelta(index=0, text="Hi"),
        PartNote(index=0, note=LogProbs(entries=(entry("Hi"),))),
        PartDelta(index=0, text=" you"),
        PartNote(index=0, note=LogProbs(entries=(entry(" you"),))),
    ]


def test_log_probabilities_that_come_before_their_text_wait_for_it() -> None:
    first = piece({"content": ""}, logprobs={"content": [entry("H")]})
    response = answer(first, piece({"content": "Hi"}))
    assert response.notes == {0: (LogProbs(entries=(entry("H"),)),)}


def test_two_lists_of_log_probabilities_become_entries() -> None:
    stated = {"tokens": ["a", "b"], "token_logprobs": [-1.0, None]}
    response = answer(piece({"content": "ab"}, logprobs=stated))
    (note,) = response.notes[0]
    assert note == LogProbs(
        entries=({"token": "a", "logprob": -1.0, "bytes": None, "top_logprobs": []},)
    )


def test_citations_are_told_with_where_they_belong() -> None:
    cited = {"url": "https://a.example", "title": "A", "start_index": 0, "end_index": 2}
    annotation = {"type": "url_citation", "url_citation": cited}
    response = answer(
        sse(chunk({"content": "Hi"})),
        sse(chunk({"content": "", "annotations": [annotation, {"type": "file_citation"}]})),
    )
    expected = Citation(url="https://a.example", title="A", start=0, end=2)
    assert response.notes == {0: (expected,)}


def test_sources_that_repeat_with_every_chunk_are_told_once() -> None:
    sources = {
        "citations": ["https://a.example", "https://b.example"],
        "search_results": [{"url": "https://a.example", "title": "A"}],
    }
    response = answer(
        sse(chunk({"content": "Hi"}, **sources)), sse(chunk({"content": "!"}, **sources))
    )
    assert response.notes == {
        0: (Citation(url="https://a.example", title="A"), Citation(url="https://b.example"))
    }


def test_q33_signed_reasoning_is_put_together_and_kept_for_its_signer() -> None:
    def thought(**detail: Any) -> bytes:
        text = detail.get("text")
        body = {"reasoning_details": [{"type": "reasoning.text", "index": 0, **detail}]}
        return sse(chunk({"content": ""} | ({"reasoning": text} if text else {}) | body))

    response = answer(
        thought(text="Let me ", format="x-v1"),
        thought(text="think."),
        thought(signature="c2ln"),
        sse(chunk({"content": "So."})),
    )
    signed = Provenance(signer="x-v1", signature="c2ln")
    assert response.parts == (
        Reasoning(text="Let me think.", provenance=signed),
        Text(text="So."),
    )


def test_q33_reasoning_that_is_hidden_is_a_part_without_words() -> None:
    hidden = {"type": "reasoning.encrypted", "data": "b64", "index": 0}
    response = answer(sse(chunk({"reasoning_details": [hidden]})), sse(chunk({"content": "So."})))
    kept = Provenance(signer=None, data="b64")
    assert response.parts == (Reasoning(text="", provenance=kept), Text(text="So."))


def test_q35_details_alone_say_what_was_thought() -> None:
    details = [
        {"type": "reasoning.summary", "summary": "Hm. ", "index": 0},
        {"type": "reasoning.text", "text": "Right.", "index": 1},
    ]
    assert answer(
        sse(chunk({"reasoning_details": details})), sse(chunk({"content": "So."}))
    ).parts == (
        Reasoning(text="Hm. ", provenance=Provenance(signer=None, is_summary=True)),
        Reasoning(text="Right."),
        Text(text="So."),
    )


def test_q34_what_is_attached_to_a_call_is_kept_for_its_signer() -> None:
    extra = {"google": {"thought_signature": "c2ln"}}
    signed = call_delta(0, id_="a", name="now", arguments="{}") | {"extra_content": extra}
    response = answer(sse(chunk({"tool_calls": [signed]})))
    assert response.parts == (
        ToolCall(
            id="a",
            name="now",
            arguments="{}",
            provenance=Provenance(signer=GEMINI, signature="c2ln"),
        ),
    )


def choice(index: int, text: str | None = None, finish: str | None = None) -> dict[str, Any]:
    delta = {} if text is None else {"content": text}
    return {"index": index, "delta": delta, "finish_reason": finish}


def told_apart(*chunks: bytes, choices: int = 2) -> list[list[Frame]]:
    frames: list[list[Frame]] = [[] for _ in range(choices)]
    demultiplexer = ChoiceDemultiplexer("acme", choices)
    for frame in sse_frames(chunks):
        for index, own in demultiplexer.feed(frame):
            frames[index].append(own)
    return frames


def with_choices(*choices: dict[str, Any], **extra: Any) -> bytes:
    return sse(chunk(**extra) | {"choices": list(choices)})


def test_c14_choices_are_told_apart_before_they_are_decoded() -> None:
    frames = told_apart(
        with_choices(choice(1, "B")),
        with_choices(choice(0, "A"), choice(1, "b")),
        with_choices(choice(0, finish="stop")),
        with_choices(choice(1, finish="length"), usage=usage(9, 3)),
        DONE,
    )
    first, second = (folded(decoded(ChatDecoder("acme"), own)) for own in frames)
    assert (first.parts, second.parts) == ((Text(text="A"),), (Text(text="Bb"),))
    assert (first.finish, second.finish) == ("stop", "length")
    assert (first.usage.output_tokens, second.usage.output_tokens) == (3, None)


def test_c14_an_error_is_everybodys() -> None:
    for own in told_apart(sse({"error": {"code": 503, "message": "no"}})):
        with pytest.raises(UpstreamError) as raised:
            decoded(ChatDecoder("acme"), own)
        assert raised.value.code is ErrorCode.PROVIDER_OVERLOADED


@pytest.mark.parametrize("index", [2, -1, "0", None])
def test_c14_a_choice_that_nobody_asked_for_is_an_error(index: Any) -> None:
    with pytest.raises(UpstreamError):
        told_apart(with_choices(choice(index, "A")))


@pytest.mark.parametrize("bad", [b"data: {\n\n", b"data: []\n\n", sse({"choices": 1})])
def test_c14_what_cannot_be_read_is_an_error_of_the_decoder(bad: bytes) -> None:
    for own in told_apart(bad):
        with pytest.raises(UpstreamError):
            decoded(ChatDecoder("acme"), own)
