"""C81: legacy completions as they are written, streamed and whole.

Keeps C5, C6, C26, C28, C33, C37, C81.
"""

import json
from decimal import Decimal
from typing import Any

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.chat_stream import exact, frames
from tests.clocks import FixedClock
from tests.completion_stream import accumulated
from tests.strategies import event_streams, usages
from tests.unit.ingress.samples import EPISODE_ID, SERVED, record
from tollgate.core.buffer_budget import ProcessBuffers
from tollgate.core.content import Reasoning, Refusal, Text
from tollgate.core.errors import BufferFull, ErrorCode, UpstreamError
from tollgate.core.events import (
    Ended,
    Finish,
    LogProbs,
    PartDelta,
    PartEnd,
    PartNote,
    PartStart,
    Started,
    StreamEvent,
)
from tollgate.core.ids import IdSource
from tollgate.core.response import Fold
from tollgate.core.usage import Usage
from tollgate.ingress.completions import Completions
from tollgate.ingress.completions.render import CompletionRenderer
from tollgate.ingress.completions.wire.completion_reply import (
    Completion,
    CompletionChunk,
    CompletionFailure,
)


def renderer(**fields: Any) -> CompletionRenderer:
    """A renderer of a call of a client."""
    format_ = Completions(IdSource(FixedClock()))
    body = {"model": "test/echo", "prompt": "Once", "episode_id": EPISODE_ID, **fields}
    call = format_.parse(json.dumps(body).encode())
    return format_.renderer(call, SERVED, credits_per_usd=Decimal(1))


def both(events: list[StreamEvent], usage: Usage, **fields: Any) -> tuple[bytes, bytes]:
    """The stream of some events, and the whole reply that they fold into."""
    writer = renderer(**fields)
    fold = Fold()
    stream = b""
    for event in events:
        stream += writer.feed(event)
        fold.accept(event)
    written = record(usage=usage)
    whole = renderer(**fields).whole([fold.response()], written)
    return stream + writer.close(written), whole


def said(*texts: str, finish: Finish = "stop") -> list[StreamEvent]:
    return [
        Started(),
        PartStart(index=0, part=Text(text="")),
        *(PartDelta(index=0, text=text) for text in texts),
        PartEnd(index=0),
        Ended(finish=finish, raw_finish="own"),
    ]


wishes = st.fixed_dictionaries(
    {},
    optional={
        "echo": st.just(True),
        "usage_on": st.just("finish"),
    },
) | st.fixed_dictionaries({"logprobs": st.integers(0, 5)})


@given(events=event_streams(), usage=usages, fields=wishes)
def test_c37_c81_a_stream_accumulates_to_the_whole_reply(
    events: list[StreamEvent], usage: Usage, fields: dict[str, Any]
) -> None:
    stream, whole = both(events, usage, **fields)
    assert accumulated(stream) == exact(whole)


@given(events=event_streams(), usage=usages, fields=wishes)
def test_c6_c81_what_is_written_is_what_is_published(
    events: list[StreamEvent], usage: Usage, fields: dict[str, Any]
) -> None:
    stream, whole = both(events, usage, **fields)
    Completion.model_validate_json(whole)
    for frame in stream.split(b"\n\n")[:-2]:
        CompletionChunk.model_validate_json(frame.removeprefix(b"data: "))


def test_c5_c26_c81_a_reply_has_text_usage_and_accounts() -> None:
    usage = Usage(uncached_input_tokens=3, output_tokens=2)
    reply = exact(both(said("upon", " a"), usage)[1])
    assert reply["id"] == f"gen-{SERVED.generation_id}"
    assert (reply["object"], reply["model"]) == ("text_completion", "test/echo")
    assert reply["choices"] == [
        {
            "text": "upon a",
            "index": 0,
            "logprobs": None,
            "finish_reason": "stop",
            "native_finish_reason": "own",
        }
    ]
    assert reply["usage"]["total_tokens"] == 5
    assert reply["usage"]["cost"] == Decimal("1.234567891")
    assert (reply["model_used"], reply["provider_used"]) == ("test/echo", "simulator")


def test_c81_an_echo_is_the_prompt_before_each_of_its_answers() -> None:
    fields: dict[str, Any] = {"prompt": ["One", "Two"], "n": 2, "echo": True}
    folds = [Fold() for _ in range(4)]
    writer = renderer(**fields)
    stream = b""
    for choice, fold in enumerate(folds):
        for event in said(f" {choice}"):
            fold.accept(event)
            stream += writer.feed(event, choice)
    whole = exact(renderer(**fields).whole([fold.response() for fold in folds], record()))
    texts = [choice["text"] for choice in whole["choices"]]
    assert texts == ["One 0", "One 1", "Two 2", "Two 3"]
    assert accumulated(stream + writer.close(record())) == whole


def test_c81_reasoning_is_left_out_and_a_refusal_is_text() -> None:
    events: list[StreamEvent] = [
        Started(),
        PartStart(index=0, part=Reasoning(text="")),
        PartDelta(index=0, text="hidden"),
        PartEnd(index=0),
        PartStart(index=1, part=Refusal(text="")),
        PartDelta(index=1, text="I cannot."),
        PartEnd(index=1),
        Ended(finish="content_filter"),
    ]
    stream, whole = both(events, Usage())
    assert exact(whole)["choices"][0]["text"] == "I cannot."
    assert b"hidden" not in stream + whole


TOKENS = [
    {"token": "up", "logprob": -0.5, "top_logprobs": [{"token": "up", "logprob": -0.5}]},
    {"token": "on", "logprob": -1.0, "top_logprobs": []},
]


def test_c81_log_probs_are_four_lists_in_the_frame_of_their_text() -> None:
    events: list[StreamEvent] = [
        Started(),
        PartStart(index=0, part=Text(text="")),
        PartDelta(index=0, text="up"),
        PartNote(index=0, note=LogProbs(entries=(TOKENS[0],))),
        PartDelta(index=0, text="on"),
        PartNote(index=0, note=LogProbs(entries=(TOKENS[1],))),
        PartEnd(index=0),
        Ended(finish="length"),
    ]
    stream, whole = both(events, Usage(), logprobs=1)
    assert exact(whole)["choices"][0]["logprobs"] == {
        "tokens": ["up", "on"],
        "token_logprobs": [Decimal("-0.5"), Decimal("-1.0")],
        "top_logprobs": [{"up": Decimal("-0.5")}, {}],
        "text_offset": [0, 2],
    }
    first, second, *_ = frames(stream)
    assert [
        (it["choices"][0]["text"], it["choices"][0]["logprobs"]["text_offset"])
        for it in (first, second)
    ] == [
        ("up", [0]),
        ("on", [2]),
    ]


def test_c33_c81_a_break_is_a_frame_with_an_error_and_no_choices() -> None:
    writer = renderer()
    begun = b"".join(map(writer.feed, said("upon")[:3]))
    error = UpstreamError(ErrorCode.PROVIDER_OVERLOADED, "It is overloaded.")
    *_, last = frames(begun + writer.fail(error, record()))
    assert "choices" not in last
    assert last["error"]["code"] == "provider_overloaded"
    assert last["usage"]["cost"] == Decimal("1.234567891")
    CompletionFailure.model_validate_json(json.dumps(last, default=float))


def test_c28_c81_the_routing_is_shown_to_those_who_ask() -> None:
    format_ = Completions(IdSource(FixedClock()))
    call = replace(format_.parse(b'{"model": "test/echo", "prompt": "Once"}'), tells_routing=True)
    writer = format_.renderer(call, SERVED, credits_per_usd=Decimal(1))
    fold = Fold()
    for event in said("upon"):
        fold.accept(event)
    assert exact(writer.whole([fold.response()], record()))["tollgate_metadata"]["requested"]


def test_c47_text_that_waits_for_an_earlier_part_is_counted() -> None:
    writer = renderer()
    with ProcessBuffers(request_bytes_max=100).open("acme"):
        writer.feed(Started())
        writer.feed(PartStart(index=0, part=Text(text="")))
        writer.feed(PartStart(index=1, part=Refusal(text="")))
        assert b"x" * 200 in writer.feed(PartDelta(index=0, text="x" * 200))
        with pytest.raises(BufferFull):
            writer.feed(PartDelta(index=1, text="x" * 200))


class Replay:
    """An OpenAI client whose server answers with the bytes it was given last."""

    def __init__(self) -> None:
        self.body, self.content_type = b"", ""
        self.client = openai.OpenAI(
            api_key="sk-tg-test",
            base_url="http://replay.invalid/v1",
            max_retries=0,
            http_client=httpx2.Client(transport=httpx2.MockTransport(self._answer)),
        )

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=self.body, headers={"content-type": self.content_type})

    def whole(self, body: bytes) -> str:
        self.body, self.content_type = body, "application/json"
        return self.client.completions.create(model="m", prompt="p").choices[0].text

    def streamed(self, body: bytes) -> str:
        self.body, self.content_type = body, "text/event-stream"
        chunks = self.client.completions.create(model="m", prompt="p", stream=True)
        return "".join(choice.text for chunk in chunks for choice in chunk.choices)


REPLAY = Replay()


@given(events=event_streams(), usage=usages)
def test_c37_c81_the_official_sdk_reads_the_same_text_from_both(
    events: list[StreamEvent], usage: Usage
) -> None:
    stream, whole = both(events, usage)
    assert REPLAY.streamed(stream) == REPLAY.whole(whole)


def test_c33_c81_the_official_sdk_raises_for_a_break() -> None:
    writer = renderer()
    begun = b"".join(map(writer.feed, said("upon")[:3]))
    error = UpstreamError(ErrorCode.PROVIDER_OVERLOADED, "It is overloaded.")
    with pytest.raises(openai.APIError, match="overloaded"):
        REPLAY.streamed(begun + writer.fail(error, record()))
