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
from tollgate.core.events import PartDelta, StreamEvent
from tollgate.providers.base import Frame
from tollgate.providers.openai_chat.chunk_pattern import ChunkPattern
from tollgate.providers.openai_chat.decode import ChatDecoder
from tollgate.providers.openai_chat.wire import CHUNKS

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
