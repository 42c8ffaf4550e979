"""AWS event-stream framing, cut anywhere and damaged; every message here is synthetic."""

import pytest

from tests.upstream import converse_events as converse
from tollgate.aws.eventstream import MESSAGE_BYTES_MAX, EventStreamDecoder, EventStreamMessage
from tollgate.core.errors import ErrorCode, UpstreamError

MESSAGE = converse.event("messageStop", {"stopReason": "end_turn"})


def read(*chunks: bytes) -> list[EventStreamMessage]:
    decoder = EventStreamDecoder()
    return [message for chunk in chunks for message in decoder.feed(chunk)] + decoder.end()


def test_a_message_is_its_type_and_payload() -> None:
    assert (
        read(MESSAGE + MESSAGE)
        == [EventStreamMessage("messageStop", None, b'{"stopReason": "end_turn"}')] * 2
    )


def test_an_exception_has_its_type() -> None:
    (message,) = read(converse.exception("throttlingException", "slow"))
    assert message.exception == "throttlingException"


@pytest.mark.parametrize("at", range(1, len(MESSAGE)))
def test_a_message_cut_by_the_end_of_the_stream_is_an_error(at: int) -> None:
    with pytest.raises(UpstreamError) as raised:
        read(MESSAGE, MESSAGE[:at])
    assert raised.value.code is ErrorCode.PROVIDER_UNAVAILABLE


@pytest.mark.parametrize("at", range(len(MESSAGE)))
def test_a_damaged_byte_is_an_error(at: int) -> None:
    damaged = MESSAGE[:at] + bytes([MESSAGE[at] ^ 1]) + MESSAGE[at + 1 :]
    with pytest.raises(UpstreamError) as raised:
        read(damaged, MESSAGE)
    assert raised.value.code is ErrorCode.PROVIDER_UNAVAILABLE


def test_a_message_over_the_limit_is_an_error_before_it_is_whole() -> None:
    long = converse.message({":message-type": "event"}, b"x" * (MESSAGE_BYTES_MAX + 1))
    decoder = EventStreamDecoder()
    with pytest.raises(UpstreamError, match="more than"):
        list(decoder.feed(long[:-1]))


def test_what_came_whole_before_the_damage_is_still_told() -> None:
    messages = EventStreamDecoder().feed(MESSAGE + b"\xff" * 64)
    assert next(messages).event == "messageStop"
    with pytest.raises(UpstreamError):
        next(messages)
