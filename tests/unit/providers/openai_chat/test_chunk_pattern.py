"""A chunk that is read by its pattern means what it means when it is parsed.

Keeps C37.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.providers.decoding import decoded
from tests.upstream.openai_chunks import chunk
from tollgate.core.errors import UpstreamError
from tollgate.core.events import PartDelta, PartDeltas, StreamEvent, ungroup
from tollgate.providers.codecs.openai_chat.chunk_pattern import ChunkPattern
from tollgate.providers.codecs.openai_chat.decode import ChatDecoder
from tollgate.providers.codecs.openai_chat.wire import CHUNKS
from tollgate.providers.ports.base import Frame

# Texts that stand elsewhere in a chunk too, as a value, a name or what separates them.
ELSEWHERE = ["synthetic-1", "content", "chat.completion.chunk", "delta", ",", ": ", ":", "0", "1"]
HARD = ['"', "\\", "\\n", "\n", "\t", "\x7f", "\u2028", "é", "😀", '"}, "finish_reason": "stop"']
texts = st.one_of(st.text(max_size=6), st.sampled_from([*ELSEWHERE, *HARD]))


def written(body: Any, *, ascii_only: bool = True, tight: bool = False) -> bytes:
    separators = (",", ":") if tight else None
    return json.dumps(body, ensure_ascii=ascii_only, separators=separators).encode()


def events_of(chunks: Sequence[bytes]) -> list[StreamEvent]:
    ending = [written(chunk({}, finish="stop")), b"[DONE]"]
    return decoded(ChatDecoder("acme"), [Frame(data=each) for each in (*chunks, *ending)])


def outcome(frames: Sequence[Frame], *, together: bool) -> tuple[list[StreamEvent], str | None]:
    """The events of the frames of one read, and the error at which they end."""
    decoder, events = ChatDecoder("acme"), list[StreamEvent]()
    try:
        if together:
            events += (event for _, event in ungroup((0, it) for it in decoder.feed_read(frames)))
        else:
            for each in frames:
                events += decoder.feed(each)
    except UpstreamError as error:
        return events, str(error)
    return events, None


def shown(chunks: Sequence[bytes]) -> list[str]:
    return [event.text for event in events_of(chunks) if isinstance(event, PartDelta)]


@given(st.lists(texts, max_size=8), st.booleans(), st.booleans())
def test_any_text_is_shown_as_it_was_written(
    words: list[str], ascii_only: bool, tight: bool
) -> None:
    chunks = [
        written(chunk({"content": word}), ascii_only=ascii_only, tight=tight) for word in words
    ]
    assert shown(chunks) == [word for word in words if word]


@given(texts, texts, st.booleans())
def test_a_pattern_finds_the_text_that_parsing_finds(
    first: str, second: str, ascii_only: bool
) -> None:
    pattern = ChunkPattern()
    pattern.learn(written(chunk({"content": first}), ascii_only=ascii_only), first)
    other = written(chunk({"content": second}), ascii_only=ascii_only)
    assert pattern.find_text(other) in (None, CHUNKS.decode(other).plain_text)


CALL = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]}
others = st.sampled_from(
    [
        chunk({"reasoning_content": "so"}),
        chunk({"refusal": "no"}),
        chunk(CALL),
        chunk({"content": "last"}, finish="stop"),
        chunk({"content": "padded"}) | {"p": "xx"},
        {"error": {"message": "It broke."}},
    ]
)
bodies = st.one_of(texts.map(lambda text: chunk({"content": text})), others)


@given(
    st.lists(st.tuples(bodies, st.sampled_from(["message"] * 20 + ["error"])), max_size=24),
    st.booleans(),
)
def test_chunks_of_one_read_mean_what_each_means_by_itself(
    chunks: list[tuple[Any, str]], ascii_only: bool
) -> None:
    frames = [Frame(data=written(body, ascii_only=ascii_only), event=name) for body, name in chunks]
    assert outcome(frames, together=True) == outcome(frames, together=False)


@given(st.lists(st.sampled_from([b"a", b"", b"\\", b'"', b"\n", b"\xff", b"\\n"]), max_size=12))
def test_bytes_of_any_kind_within_a_read_mean_what_each_means_by_itself(
    pieces: list[bytes],
) -> None:
    plain = written(chunk({"content": "text"}))
    frames = [Frame(data=plain)] * 2
    frames += (Frame(data=plain.replace(b"text", piece)) for piece in (b"one", *pieces))
    # Broken in two, at each place that a text might hide.
    frames += (Frame(data=half) for half in plain.split(b"text"))
    assert outcome(frames, together=True) == outcome(frames, together=False)


def test_texts_of_one_read_are_one_event() -> None:
    says = [
        Frame(data=written(chunk({"content": word}))) for word in ("a", "b", "c", "d\n", "", "e")
    ]
    ending = [Frame(data=written(chunk({}, finish="stop"))), Frame(data=b"[DONE]")]
    read = [*says[:2], *says, *ending]
    events = list(ChatDecoder("acme").feed_read(read))
    assert events[-1] == PartDeltas(index=0, texts=["a", "b", "c", "d\n", "e"])


def test_chunks_in_other_lines_are_no_texts_together() -> None:
    pattern = ChunkPattern()
    plain = written(chunk({"content": "text"}))
    pattern.learn(plain, "text")
    assert pattern.find_texts([plain, plain]) == ["text", "text"]
    assert pattern.find_texts([plain + b"\n" + plain, plain]) == []
    assert pattern.find_texts([plain[:9], plain[9:]]) == []
    assert pattern.find_texts([plain, plain[:9], plain]) == ["text"]


@pytest.mark.parametrize("bare", [b"\t", b"\xff", b'"', b"\\", b"\\ud800"])
def test_texts_of_one_read_end_before_what_is_no_string(bare: bytes) -> None:
    plain = written(chunk({"content": "text"}))
    pattern = ChunkPattern()
    pattern.learn(plain, "text")
    bad = plain.replace(b"text", bare)
    assert pattern.find_texts([plain, bad, plain]) in (["text"], [])


def test_bytes_that_two_quotes_share_are_no_chunk() -> None:
    plain = written(chunk({"content": "text"}))
    pattern = ChunkPattern()
    pattern.learn(plain, "text")
    shared = plain.replace(b'"text"', b'"')
    assert pattern.find_texts([plain, shared, plain]) == ["text"]


def test_a_frame_within_a_read_that_is_named_an_error_is_one() -> None:
    plain = Frame(data=written(chunk({"content": "text"})))
    error = Frame(data=plain.data, event="error")
    read = [*[plain] * 6, error, *[plain] * 6]
    events, failure = outcome(read, together=True)
    assert sum(isinstance(event, PartDelta) for event in events) == 6
    assert failure is not None


def test_a_text_of_the_usual_kind_is_found() -> None:
    pattern = ChunkPattern()
    pattern.learn(written(chunk({"content": " one"})), " one")
    assert pattern.find_text(written(chunk({"content": " two"}))) == " two"


@pytest.mark.parametrize("elsewhere", ELSEWHERE)
def test_what_stands_elsewhere_is_not_taken_for_the_text(elsewhere: str) -> None:
    whole = {"model": elsewhere, **chunk({"content": elsewhere})}
    pattern = ChunkPattern()
    pattern.learn(written(whole), elsewhere)
    renamed = {**whole, "model": "another"}
    assert pattern.find_text(written(renamed)) in (None, elsewhere)


@pytest.mark.parametrize(
    ("delta", "text", "other"),
    [
        # Of two values of one name the last counts.
        (
            '{"content": "probe", "content": "probe"}',
            "probe",
            '{"content": "a", "content": "probe"}',
        ),
        # Without its second name, the first one counts.
        (
            r'{"\u0063ontent": "probe", "content": "content"}',
            "content",
            r'{"\u0063ontent": "probe", "a": "content"}',
        ),
    ],
)
def test_c37_a_server_that_knows_what_is_tried_is_read_as_it_writes(
    delta: str, text: str, other: str
) -> None:
    around = written(chunk({"content": None}))
    first, second = (around.replace(b'{"content": null}', it.encode()) for it in (delta, other))
    assert CHUNKS.decode(first).plain_text == text
    pattern = ChunkPattern()
    pattern.learn(first, text)
    assert pattern.find_text(second) in (None, CHUNKS.decode(second).plain_text)


@pytest.mark.parametrize(
    "beside",
    [
        {"finish_reason": "stop"},
        {"index": 1},
        {"delta": {"content": "text", "tool_calls": [{"index": 0}]}},
        {"delta": {"content": "text", "refusal": "no"}},
        {"delta": {"content": None}},
        {"logprobs": {"content": [{"token": "text", "logprob": -1.0, "top_logprobs": []}]}},
    ],
)
def test_a_chunk_with_more_than_text_is_parsed(beside: dict[str, Any]) -> None:
    plain = chunk({"content": "text"})
    pattern = ChunkPattern()
    pattern.learn(written(plain), "text")
    more = {**plain, "choices": [{**plain["choices"][0], **beside}]}
    assert pattern.find_text(written(plain)) == "text"
    assert pattern.find_text(written(more)) is None


@pytest.mark.parametrize("bare", [b"\x01", b"\t", b"\xff", b"\xed\xa0\x80"])
def test_a_text_that_is_no_json_stays_unreadable(bare: bytes) -> None:
    plain = written(chunk({"content": "text"}))
    with pytest.raises(UpstreamError):
        events_of([plain, plain, plain.replace(b"text", bare)])


def test_a_frame_that_is_named_an_error_is_one() -> None:
    plain = Frame(data=written(chunk({"content": "text"})))
    error = Frame(data=plain.data, event="error")
    finish = Frame(data=written(chunk({}, finish="stop")))
    with pytest.raises(UpstreamError):
        decoded(ChatDecoder("acme"), [plain, plain, plain, error, finish])


def test_patterns_of_a_server_that_pads_each_chunk_are_given_up() -> None:
    pattern = ChunkPattern()
    padded = [written({**chunk({"content": "text"}), "p": "x" * length}) for length in range(6)]
    for each in padded:
        pattern.learn(each, "text")
    assert pattern.find_text(padded[3]) == "text"
    assert pattern.find_text(padded[5]) is None
