"""AWS event-stream framing, cut anywhere and damaged; every message here is synthetic."""

import struct
import zlib
from collections.abc import Sequence
from contextlib import suppress

import pytest
from botocore.eventstream import (  # type: ignore[import-untyped]  # botocore ships no types
    EventStreamBuffer,
    ParserError,
)
from hypothesis import given
from hypothesis import strategies as st

from tests.cells import cells
from tests.unit.providers.decoding import pieces
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


@cells("at", range(1, len(MESSAGE)))
def test_a_message_cut_by_the_end_of_the_stream_is_an_error(at: int) -> None:
    with pytest.raises(UpstreamError) as raised:
        read(MESSAGE, MESSAGE[:at])
    assert raised.value.code is ErrorCode.PROVIDER_UNAVAILABLE


@cells("at", range(len(MESSAGE)))
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


NAMES = [b":message-type", b":event-type", b":exception-type", b"a", b"\xc3\xa9"]
LENGTHS = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
texts = st.sampled_from([b"event", b"exception", b"chunk", b"", b"\xc3\xa9"])
values = st.one_of(
    st.tuples(st.just(7), texts),
    st.tuples(st.just(6), st.binary(max_size=4)),
    st.sampled_from([(kind, bytes(size)) for kind, size in LENGTHS.items()]),
)


def packed(headers: Sequence[tuple[bytes, tuple[int, bytes]]], payload: bytes) -> bytes:
    """A message with headers of any type."""
    head = b"".join(
        struct.pack("!B", len(name))
        + name
        + struct.pack("!B", kind)
        + (struct.pack("!H", len(value)) if kind in (6, 7) else b"")
        + value
        for name, (kind, value) in headers
    )
    prelude = struct.pack("!II", 16 + len(head) + len(payload), len(head))
    prelude += struct.pack("!I", zlib.crc32(prelude))
    body = prelude + head + payload
    return body + struct.pack("!I", zlib.crc32(body))


def botocores(octets: bytes) -> list[tuple[dict[str, object], bytes]]:
    """What botocore reads, up to the first message that it refuses."""
    buffer, found = EventStreamBuffer(), []
    buffer.add_data(octets)
    with suppress(ParserError):
        # One by one, for the last may be refused.
        found.extend((message.headers, message.payload) for message in buffer)
    return found


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from(NAMES), values).map(lambda made: [*made.items()]),
            st.binary(max_size=20),
        ),
        max_size=4,
    ),
    st.lists(st.integers(min_value=0), max_size=4),
    st.none() | st.tuples(st.integers(min_value=0), st.integers(1, 255)),
)
def test_c37_messages_are_those_that_botocore_reads_whatever_the_cuts(
    messages: list[tuple[list[tuple[bytes, tuple[int, bytes]]], bytes]],
    cuts: list[int],
    damage: tuple[int, int] | None,
) -> None:
    whole = bytearray(b"".join(packed(headers, payload) for headers, payload in messages))
    if damage is not None and whole:
        whole[damage[0] % len(whole)] ^= damage[1]
    expected = []
    for headers, payload in botocores(bytes(whole)):
        match headers.get(":message-type"):
            case "event":
                expected.append((_text(headers, ":event-type"), None, payload))
            case "exception":
                expected.append(("exception", _text(headers, ":exception-type"), payload))
            case _:
                break
    decoder, found = EventStreamDecoder(), []
    with suppress(UpstreamError):
        for piece in pieces(bytes(whole), cuts):
            found += decoder.feed(piece)
    assert [(each.event, each.exception, each.payload) for each in found] == expected


def _text(headers: dict[str, object], name: str) -> str:
    """A header that is a text; botocore reads bytes and numbers too."""
    value = headers.get(name)
    return value if isinstance(value, str) else ""


def test_a_header_that_comes_twice_is_damage() -> None:
    twice = packed([(b":event-type", (7, b"a")), (b":event-type", (7, b"b"))], b"")
    assert botocores(twice) == []
    with pytest.raises(UpstreamError, match="damaged"):
        read(twice)
