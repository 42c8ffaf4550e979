"""C81: streams of servers that complete prompts, in the shapes that they come in.

Keeps C26, C37, C81.
"""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.providers.decoding import decoded, folded, sse_frames
from tests.upstream.completion_chunks import chunk
from tests.upstream.openai_chunks import DONE, sse, usage
from tollgate.core.content import Text
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.events import LogProbs
from tollgate.core.response import GenerationResponse
from tollgate.providers.codecs.openai_completions.decode import CompletionDecoder


def read(*payloads: dict[str, Any], end: bytes = DONE) -> GenerationResponse:
    return folded(decoded(CompletionDecoder("near"), sse_frames([*map(sse, payloads), end])))


def test_c26_c81_deepseeks_cache_is_counted() -> None:
    report = {
        "prompt_tokens": 10,
        "completion_tokens": 2,
        "total_tokens": 12,
        "prompt_cache_hit_tokens": 4,
        "prompt_cache_miss_tokens": 6,
    }
    response = read(chunk("a"), chunk("", finish="length"), chunk(usage=report))
    assert (response.finish, response.raw_finish) == ("length", "length")
    assert (response.usage.uncached_input_tokens, response.usage.cache_read_input_tokens) == (6, 4)


def test_c81_mistrals_choices_are_those_of_chat() -> None:
    said = {"id": "1", "object": "chat.completion.chunk", "model": "codestral"}
    frames = [
        said | {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "re"}}]},
        said
        | {
            "choices": [{"index": 0, "delta": {"content": "turn"}, "finish_reason": "stop"}],
            "usage": usage(9, 2),
        },
    ]
    response = read(*frames)
    assert response.parts == (Text(text="return"),)
    assert response.usage.output_tokens == 2


def test_c81_a_server_that_does_not_stream_is_read() -> None:
    whole = chunk("return", finish="stop", usage=usage(9, 2))
    assert read(whole, end=b"").parts == (Text(text="return"),)


def test_c81_lists_of_log_probs_are_entries_as_chat_has_them() -> None:
    lists = {
        "tokens": ["re", "turn"],
        "token_logprobs": [-0.5, None],
        "top_logprobs": [{"re": -0.5, "im": -2.0}, None],
        "text_offset": [0, 2],
    }
    response = read(chunk("return", logprobs=lists), chunk("", finish="stop"))
    [note] = response.notes[0]
    assert isinstance(note, LogProbs)
    first, second = note.entries
    assert (first["token"], first["logprob"]) == ("re", -0.5)
    assert first["top_logprobs"] == [
        {"token": "re", "logprob": -0.5, "bytes": None},
        {"token": "im", "logprob": -2.0, "bytes": None},
    ]
    assert (second["logprob"], second["top_logprobs"]) == (None, [])


def test_c81_an_empty_answer_is_an_answer() -> None:
    assert read(chunk("", finish="stop")).parts == ()


@pytest.mark.parametrize("reason", ["abort", "insufficient_system_resource"])
def test_c81_a_broken_answer_is_an_error(reason: str) -> None:
    with pytest.raises(UpstreamError) as raised:
        read(chunk("a"), chunk("", finish=reason))
    assert raised.value.code is ErrorCode.PROVIDER_UNAVAILABLE


def test_c81_a_second_choice_is_an_error() -> None:
    second = chunk("a") | {"choices": [{"index": 1, "text": "a"}]}
    with pytest.raises(UpstreamError):
        read(second)


chunks = st.one_of(
    st.builds(
        lambda text, finish: sse(chunk(text, finish=finish)),
        st.sampled_from([None, "", "text"]),
        st.sampled_from([None, None, "", "stop", "tool_calls", "error", "new"]),
    ),
    st.sampled_from([sse(chunk(usage=usage())), sse(chunk()), DONE, b": hi\n\n", b"data: {}\n\n"]),
)


@given(st.lists(chunks, max_size=8))
def test_any_order_of_chunks(written: list[bytes]) -> None:
    with suppress(UpstreamError):
        finish = folded(decoded(CompletionDecoder("near"), sse_frames(written))).finish
        assert finish in ("stop", "length", "content_filter")
