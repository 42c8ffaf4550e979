"""Server-sent events, cut anywhere.

Keeps C37.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.providers.decoding import pieces
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.providers.ports.base import Frame
from tollgate.providers.transports.sse import EVENT_BYTES_MAX, SseDecoder


def events_of(*chunks: bytes) -> list[Frame]:
    decoder = SseDecoder()
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.end()


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_any_line_end_closes_a_line(line_end: bytes) -> None:
    body = line_end.join([b"event: ping", b"data: a", b"data: b", b"", b"data:c", b"", b""])
    assert events_of(body) == [Frame(event="ping", data=b"a\nb"), Frame(event="message", data=b"c")]


def test_a_byte_order_mark_is_skipped_once() -> None:
    body = b"\xef\xbb\xbfdata: a\n\ndata: \xef\xbb\xbfb\n\n"
    assert events_of(*(body[at : at + 1] for at in range(len(body)))) == [
        Frame(event="message", data=b"a"),
        Frame(event="message", data=b"\xef\xbb\xbfb"),
    ]


def test_comments_and_unknown_fields_say_nothing() -> None:
    assert events_of(b": hi\n\nid: 3\nretry: 5\nnonsense\ndata: a\n: in between\n\n") == [
        Frame(event="message", data=b"a")
    ]


def test_one_space_after_the_colon_is_no_data() -> None:
    assert events_of(b"data:  a \n\n") == [Frame(event="message", data=b" a ")]


def test_an_event_without_data_is_none_and_its_name_does_not_stick() -> None:
    assert events_of(b"event: ping\n\ndata: a\n\n") == [Frame(event="message", data=b"a")]


def test_an_event_that_lacks_only_its_blank_line_is_delivered_at_the_end() -> None:
    assert events_of(b"data: a\n\ndata: [DONE]") == [
        Frame(event="message", data=b"a"),
        Frame(event="message", data=b"[DONE]"),
    ]


@pytest.mark.parametrize("line", [b"data: " + b"x" * 1000 + b"\n", b"y" * 1000])
def test_an_event_over_the_limit_is_an_error(line: bytes) -> None:
    lines = [line] * (EVENT_BYTES_MAX // len(line) + 1)
    with pytest.raises(UpstreamError) as raised:
        events_of(*lines)
    assert raised.value.code is ErrorCode.PROVIDER_UNAVAILABLE


@pytest.mark.parametrize("whole", [b"data: a\n\n", b"data: a\r\n\r\n"])
def test_c37_an_event_before_one_over_the_limit_in_the_same_read_is_delivered(whole: bytes) -> None:
    frames = iter(SseDecoder(event_bytes_max=64).feed(whole + b"data: " + b"x" * 64))
    assert next(frames) == Frame(data=b"a")
    with pytest.raises(UpstreamError, match="more than 64 bytes"):
        next(frames)


def test_comments_may_go_on_for_ever() -> None:
    decoder = SseDecoder()
    for _ in range(3):
        assert decoder.feed(b": waiting\n" * (EVENT_BYTES_MAX // 20)) == []


@given(
    st.lists(
        st.sampled_from(
            [b"data: a", b"data:", b"event: e", b": c", b"", b"", b"id", b"data: \xc3\xa9"]
        )
    ),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.lists(st.integers(min_value=0)),
)
def test_c37_any_cut_gives_the_same_events(
    lines: list[bytes], line_end: bytes, cuts: list[int]
) -> None:
    body = b"".join(line + line_end for line in lines)
    assert events_of(*pieces(body, cuts)) == events_of(body)


@given(
    st.lists(
        st.sampled_from(
            [
                *[b"data: {}\n\n", b"data: a\n\n", b"data: \xc3\xa9\n\n"] * 3,
                *[b"event: e\ndata: b\n\n", b": c\n\n", b"data: a\ndata: b\n\n", b"data:x\n\n"],
                *[b"\n", b"data: a\nid: 1\n\n", b"event: e\n\n", b"data: a\r\n\r\n"],
            ]
        )
    ),
    st.lists(st.integers(min_value=0), max_size=2),
)
def test_c37_plain_events_are_the_same_whole_and_byte_by_byte(
    events: list[bytes], cuts: list[int]
) -> None:
    body = b"".join(events)
    alone = events_of(*(body[at : at + 1] for at in range(len(body))))
    assert events_of(body) == alone
    assert events_of(*pieces(body, cuts)) == alone
