"""Chunks of Bedrock's InvokeModelWithResponseStream; synthetic messages.

Keeps C37.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.providers.decoding import decoded, folded, pieces
from tests.upstream import converse_events, messages_events
from tollgate.core.content import Text
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.providers.codecs.anthropic.decode import MessagesDecoder
from tollgate.providers.ports.base import Frame
from tollgate.providers.transports.invoke_frames import InvokeFrames


def unwrapped(*chunks: bytes) -> list[Frame]:
    frames = InvokeFrames()
    return [*(frame for chunk in chunks for frame in frames.feed(chunk)), *frames.end()]


def test_a_chunk_holds_one_event_in_base64() -> None:
    [frame] = unwrapped(messages_events.invoke_chunk(messages_events.PING))
    assert json.loads(frame.data) == messages_events.PING
    assert frame.exception is None


@given(st.lists(st.integers(min_value=0), max_size=8))
def test_c37_an_answer_is_the_same_wherever_its_bytes_are_cut(cuts: list[int]) -> None:
    answer = messages_events.text_answer("Hel", "lo")
    body = b"".join(messages_events.invoke_chunk(event) for event in answer)
    events = decoded(MessagesDecoder("aws"), unwrapped(*pieces(body, cuts)))
    assert folded(events).parts == (Text(text="Hello"),)


def test_q31_an_exception_stays_one() -> None:
    [frame] = unwrapped(converse_events.exception("throttlingException", "slow down"))
    assert frame.exception == "throttlingException"


@pytest.mark.parametrize("payload", [{}, {"bytes": "?"}, {"bytes": 1}, []])
def test_a_chunk_that_cannot_be_read_is_an_error(payload: object) -> None:
    with pytest.raises(UpstreamError) as raised:
        unwrapped(converse_events.event("chunk", payload))
    assert raised.value.code is ErrorCode.PROVIDER_UNAVAILABLE


def test_a_stream_that_is_cut_in_a_message_is_an_error() -> None:
    with pytest.raises(UpstreamError):
        unwrapped(messages_events.invoke_chunk(messages_events.PING)[:-1])


def test_c37_a_chunk_before_one_that_cannot_be_read_in_the_same_read_is_delivered() -> None:
    damaged = converse_events.event("chunk", {"bytes": "?"})
    frames = iter(InvokeFrames().feed(messages_events.invoke_chunk(messages_events.PING) + damaged))
    assert json.loads(next(frames).data) == messages_events.PING
    with pytest.raises(UpstreamError):
        next(frames)
