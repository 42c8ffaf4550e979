"""What is kept of an answer comes out as it went in.

Keeps C68.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.gateways import house, request_body
from tests.unit.stores.records.test_generations import USUAL
from tollgate.core.buffer_budget import ProcessBuffers
from tollgate.core.content import (
    InlineMedia,
    MadeImage,
    Provenance,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
)
from tollgate.core.documents.known_files import KnownFile
from tollgate.core.documents.reading import DocumentPage
from tollgate.core.events import (
    Citation,
    Ended,
    LogProbs,
    Output,
    PartDelta,
    PartEnd,
    Partial,
    PartNote,
    PartStart,
    Started,
    StreamEvent,
    UsageReported,
)
from tollgate.core.idempotency import Claim
from tollgate.core.usage import Usage
from tollgate.engine.replies.kept_answers import (
    RESULT_BYTES_KEPT_MAX,
    KeepingSink,
    KeptAnswer,
    replay,
)
from tollgate.engine.replies.reply_sink import reply_sink
from tollgate.ingress.base import ServedBy

SERVED = ServedBy(
    generation_id=USUAL.id,
    created_s=USUAL.created_s,
    model="openai/gpt-5-mini",
    provider="openai",
    adapted=("seed",),
)
# The form of kept answers before 2026-11-22 (decision 60).
BEFORE_TAGS = (
    b'{"generation_id": "a", "created_s": 1, "model": "m", "provider": "p", "adapted": []}\n'
    b'[[[0, {"$": "Ended", "finish": "stop", "raw_finish": null}]], null, null]'
)

texts = st.text(max_size=10)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | texts,
    lambda inner: (
        st.dictionaries(st.sampled_from(["type", "x"]), inner, max_size=2)
        | st.lists(inner, max_size=2)
    ),
    max_leaves=6,
)
objects = st.dictionaries(st.sampled_from(["type", "vendor"]), json_values, max_size=2)
provenances = st.none() | st.builds(
    Provenance,
    signer=st.none() | texts,
    signature=st.none() | texts,
    data=st.none() | texts,
    id=st.none() | texts,
    is_summary=st.booleans(),
)
indexes = st.integers(0, 9)
parts = st.one_of(
    st.builds(Text, text=texts),
    st.builds(Refusal, text=texts),
    st.builds(Reasoning, text=texts, provenance=provenances),
    st.builds(ToolCall, id=texts, name=texts, arguments=texts, provenance=provenances),
)
notes = st.one_of(
    st.builds(Citation, url=st.none() | texts, start=st.none() | indexes),
    st.builds(LogProbs, entries=st.lists(objects, max_size=2).map(tuple)),
)
events = st.one_of(
    st.builds(Started, upstream_id=st.none() | texts),
    st.builds(PartStart, index=indexes, part=parts),
    st.builds(PartDelta, index=indexes, text=texts),
    st.builds(PartNote, index=indexes, note=notes),
    st.builds(PartEnd, index=indexes, provenance=provenances),
    st.builds(UsageReported, usage=st.just(Usage(output_tokens=0)), raw=json_values),
    st.builds(Output, pieces=st.lists(st.binary(), max_size=2).map(tuple)),
    st.builds(Ended, finish=st.just("stop"), raw_finish=st.none() | texts),
)


def kept(*stream: tuple[int, StreamEvent], **changes: Any) -> KeptAnswer:
    fields = {"served": SERVED, "record": USUAL, "episode_id": None} | changes
    return KeptAnswer(events=stream, **fields)


@given(st.lists(st.tuples(st.integers(0, 3), events), max_size=5).map(tuple))
def test_c68_events_come_out_as_they_went_in(stream: tuple[tuple[int, StreamEvent], ...]) -> None:
    answer = kept(*stream)
    assert KeptAnswer.from_bytes(answer.to_bytes()) == answer


def test_c68_a_record_comes_out_as_it_went_in() -> None:
    answer = KeptAnswer.from_bytes(kept(episode_id="once").to_bytes())
    assert (answer.record, answer.served, answer.episode_id) == (USUAL, SERVED, "once")
    assert isinstance(answer.record.lines[0].usd_per_million, Decimal)


def test_c68_c72_documents_that_were_read_come_out_as_they_went_in() -> None:
    page = DocumentPage(number=1, text="Profits rose.")
    file = KnownFile(sha256="0" * 64, name="report.pdf", pages=(page,), pages_total=1)
    answer = kept(served=replace(SERVED, read_files=(file,)))
    assert KeptAnswer.from_bytes(answer.to_bytes()) == answer


@pytest.mark.parametrize(
    "damaged",
    [
        kept((0, Ended(finish="stop"))).to_bytes().replace(b'"ended"', b'"of_next_year"'),
        kept((0, PartStart(index=0, part=Text(text="")))).to_bytes().replace(b'"text"', b'"Path"'),
        kept().to_bytes()[:-1],
        b"{}",
    ],
)
def test_c68_an_answer_that_is_corrupt_is_not_read(damaged: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        KeptAnswer.from_bytes(damaged)


def test_c68_an_answer_of_a_version_before_tags_is_not_read() -> None:
    with pytest.raises(ValueError, match="required field"):
        KeptAnswer.from_bytes(BEFORE_TAGS)


@pytest.mark.parametrize("stream", [False, True])
async def test_c15_c68_a_replay_delivers_one_call_if_the_first_answer_did(stream: bool) -> None:
    home = await house()
    tools = [{"type": "function", "function": {"name": "now"}}]
    body = request_body(stream=stream, tools=tools, parallel_tool_calls=False)
    calls = [
        event
        for index, id_ in enumerate(("call-1", "call-2"))
        for event in (
            PartStart(index=index, part=ToolCall(id=id_, name="now", arguments="")),
            PartEnd(index=index),
        )
    ]
    answer = kept(*((0, event) for event in (Started(), *calls, Ended(finish="tool_calls"))))
    reply, parsed = home.reply(), home.ingress.parse(body)
    await replay(answer, home.gateway, reply, home.ingress, parsed=parsed, request_id="again")
    assert b"call-1" in reply.body
    assert b"call-2" not in reply.body


@pytest.mark.parametrize("stream", [False, True])
async def test_c68_a_replay_is_written_by_the_sink_of_a_live_answer(stream: bool) -> None:
    home = await house()
    parsed = home.call("acme/small", stream=stream).parsed
    answer = kept(
        (0, Started()),
        (0, PartStart(index=0, part=Text(text=""))),
        (0, PartDelta(index=0, text="Hello")),
        (0, PartEnd(index=0)),
        (0, Ended(finish="stop")),
        episode_id="once",
    )
    reply = home.reply()
    await replay(answer, home.gateway, reply, home.ingress, parsed=parsed, request_id="again")

    assert (reply.status, reply.ended) == (200, True)
    assert b"Hello" in reply.body
    assert b'"episode_id":"once"' in reply.body
    assert reply.headers["x-request-id"] == "again"
    assert reply.headers["x-generation-id"] == f"gen-{USUAL.id}"
    assert reply.headers["x-idempotent-replay"] == "true"
    assert reply.headers["x-tollgate-adapted"] == "seed"
    assert reply.headers.get("x-credits-used") == (None if stream else "0")
    assert not home.stores.books.records


class OneAnswer:
    """A store of one answer."""

    def __init__(self) -> None:
        self.kept: bytes | None = None
        self.released: list[Claim] = []

    async def claim(self, claim: Claim) -> bytes | None:
        return self.kept

    async def keep(self, claim: Claim, answer: bytes) -> None:
        self.kept = answer

    async def release(self, claim: Claim) -> None:
        self.released.append(claim)


def preview(size: int) -> tuple[StreamEvent, ...]:
    return (Partial(piece=b" " * size),)


def picture(size: int) -> tuple[StreamEvent, ...]:
    source = InlineMedia(media_type="image/png", base64="A" * size)
    return (PartStart(index=0, part=MadeImage(source=source)), PartEnd(index=0))


@pytest.mark.parametrize("shown", [preview, picture])
@pytest.mark.parametrize(("over", "is_kept"), [(0, True), (1, False)])
async def test_c68_c82_an_answer_that_no_store_reads_is_not_kept(
    shown: Callable[[int], tuple[StreamEvent, ...]], over: int, is_kept: bool
) -> None:
    home, answers = await house(), OneAnswer()
    reply, parsed = home.reply(), home.ingress.parse(request_body())
    claim = Claim(workspace_id="acme", key_hash="k", body_hash="b", request_id="gen-1")
    sink = reply_sink(home.gateway, reply, home.ingress, parsed, headers={})
    keeping = KeepingSink(sink, answers, claim, None)
    await keeping.begin(SERVED)
    events = (Started(), *shown(RESULT_BYTES_KEPT_MAX + over), Ended(finish="stop"))
    for event in events:
        await keeping.send([(0, event)])
    await keeping.finish(USUAL)
    assert (answers.kept is not None, answers.released == []) == (is_kept, is_kept)
    assert reply.body


@pytest.mark.parametrize(("room", "is_kept"), [(1024, True), (512, False)])
async def test_c47_c68_an_answer_that_does_not_fit_twice_is_delivered_and_not_kept(
    room: int, is_kept: bool
) -> None:
    home, answers = await house(), OneAnswer()
    reply, parsed = home.reply(), home.ingress.parse(request_body(stream=False))
    claim = Claim(workspace_id="acme", key_hash="k", body_hash="b", request_id="gen-1")
    sink = reply_sink(home.gateway, reply, home.ingress, parsed, headers={})
    keeping = KeepingSink(sink, answers, claim, None)
    with ProcessBuffers(request_bytes_max=room).open("acme"):
        await keeping.begin(SERVED)
        for event in (Started(), *picture(400), Ended(finish="stop")):
            await keeping.send([(0, event)])
        await keeping.finish(USUAL)
    assert (answers.kept is not None) == is_kept
    assert (reply.status, b"A" * 400 in reply.body) == (200, True)


class Counted(str):
    """A text that counts the characters that are copied to append it to another text."""

    __slots__ = ()
    copied = 0

    def __radd__(self, other: str) -> str:
        Counted.copied += len(other) + len(self)
        return other.__add__(self)


async def test_c9_c68_a_kept_text_is_copied_once_however_many_events_bring_it() -> None:
    home, answers = await house(), OneAnswer()
    parsed = home.ingress.parse(request_body())
    sink = reply_sink(home.gateway, home.reply(), home.ingress, parsed, headers={})
    claim = Claim(workspace_id="acme", key_hash="k", body_hash="b", request_id="gen-1")
    keeping = KeepingSink(sink, answers, claim, None)
    await keeping.begin(SERVED)
    words = [PartDelta(index=0, text=Counted("word ")) for _ in range(500)]
    start = (Started(), PartStart(index=0, part=Text(text="")))
    for event in (*start, *words, PartEnd(index=0), Ended(finish="stop")):
        await keeping.send([(0, event)])
    await keeping.finish(USUAL)
    assert answers.kept is not None
    assert ("word " * 500).encode() in answers.kept
    assert Counted.copied <= 2 * 5 * 500
