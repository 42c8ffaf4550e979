"""Every codec behind every framing reads the same answers alike; synthetic frames throughout.

The cases are the shared names of the style page, so that a clone without recordings tests them all.

Keeps C15, C25, C26, C31, C33, C37, C41, C43, C44.
"""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import costly
from tests.unit.providers.decoding import pieces
from tests.unit.providers.shared_cases import ANSWERS, cases_of, expected_parts, parts_of, read
from tests.upstream.answers import Answer
from tests.upstream.speakers import SECRETS
from tests.upstream.wires import EVERY_WIRE, WIRES, Wire
from tollgate.core.content import Image, InlineMedia, Text
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.request import GenerationRequest, UserMessage
from tollgate.providers.ports.base import UpstreamRefused

PROMPT, OUTPUT = 9, 3

all_wires = pytest.mark.parametrize("wire", EVERY_WIRE, ids=lambda wire: wire.name)
all_answers = pytest.mark.parametrize(
    ("wire", "case"),
    [
        pytest.param(wire, case, id=f"{wire.name}-{case}")
        for wire in EVERY_WIRE
        for case in cases_of(wire)
    ],
)
# Ten wires share each property, so that a few examples of each are many.
few = costly(times=2)
cuts = st.lists(st.integers(min_value=0), max_size=12)


def numbered(wire: Wire, number: int) -> Answer:
    """One of the answers that a wire has words for."""
    cases = cases_of(wire)
    return ANSWERS[cases[number % len(cases)]]


@all_answers
def test_c37_an_answer_is_read_alike_from_every_format(wire: Wire, case: str) -> None:
    answer = ANSWERS[case]
    response = read(wire, [wire.body(wire.write(answer))])
    assert [*parts_of(response)] == [*expected_parts(answer)]
    assert response.finish == answer.finish


@all_answers
def test_c26_usage_is_counted_alike_from_every_format(wire: Wire, case: str) -> None:
    usage = read(wire, [wire.body(wire.write(ANSWERS[case]))]).usage
    assert (usage.input_tokens, usage.output_tokens) == (PROMPT, OUTPUT)
    assert usage.total_tokens == PROMPT + OUTPUT
    assert (usage.cache_read_input_tokens or 0) == ANSWERS[case].cached


@all_wires
@few
@given(number=st.integers(min_value=0), cuts=cuts)
def test_c37_where_the_bytes_are_cut_changes_nothing(
    wire: Wire, number: int, cuts: list[int]
) -> None:
    body = wire.body(wire.write(numbered(wire, number)))
    assert read(wire, pieces(body, cuts)) == read(wire, [body])


@all_wires
@few
@given(number=st.integers(min_value=0), chance=st.randoms())
def test_q30_frames_that_say_nothing_change_nothing(
    wire: Wire, number: int, chance: Random
) -> None:
    events = wire.write(numbered(wire, number))
    noisy = [*events]
    for silence in wire.silences:
        noisy.insert(chance.randint(wire.head, len(noisy) - 1), silence)
    response = read(wire, [wire.body(noisy)])
    assert [*parts_of(response)] == [*expected_parts(numbered(wire, number))]


@all_wires
@few
@given(number=st.integers(min_value=0), place=st.integers(min_value=0))
def test_a_frame_of_unknown_kind_is_an_error_wherever_it_comes(
    wire: Wire, number: int, place: int
) -> None:
    events = wire.write(numbered(wire, number))
    events.insert(place % len(events), wire.unknown)
    with pytest.raises(UpstreamError) as raised:
        read(wire, [wire.body(events)])
    assert raised.value.code is ErrorCode.PROVIDER_UNAVAILABLE


@all_wires
def test_c43_rate_limited(wire: Wire) -> None:
    error = wire.codec.error(wire.rate_limited, wire.target)
    assert (error.code, error.retry_after_s) == (ErrorCode.PROVIDER_RATE_LIMIT, 7)
    assert not leaks(error)


@all_wires
def test_c44_words_of_a_400_are_shown_without_secrets(wire: Wire) -> None:
    refused = UpstreamRefused(400, {}, wire.rate_limited.body)
    error = wire.codec.error(refused, wire.target)
    assert error.code in {ErrorCode.INVALID_REQUEST, ErrorCode.PROVIDER_RATE_LIMIT}
    assert not leaks(error)


@all_wires
@few
@given(number=st.integers(min_value=0), place=st.integers(min_value=0))
def test_q31_overloaded_mid_stream(wire: Wire, number: int, place: int) -> None:
    events = wire.write(numbered(wire, number))
    cut = wire.head + place % (len(events) - wire.head)
    with pytest.raises(UpstreamError) as raised:
        read(wire, [wire.body([*events[:cut], wire.overloaded])])
    assert raised.value.code is ErrorCode.PROVIDER_OVERLOADED
    assert not leaks(raised.value)


@all_answers
def test_truncated(wire: Wire, case: str) -> None:
    body = wire.body(wire.write(ANSWERS[case]))
    with pytest.raises(UpstreamError) as raised:
        read(wire, [body[: len(body) // 2]])
    assert raised.value.code is ErrorCode.PROVIDER_UNAVAILABLE


@all_wires
@few
@given(place=st.integers(min_value=0), garbage=st.binary(min_size=1, max_size=40))
def test_malformed(wire: Wire, place: int, garbage: bytes) -> None:
    """Bytes of chance in place of the rest: an error that does not show them."""
    body = wire.body(wire.write(ANSWERS["text"]))
    cut = place % (len(body) // 2)
    with pytest.raises(UpstreamError):
        read(wire, [body[:cut], garbage])


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_image_in(wire: Wire) -> None:
    source = InlineMedia(media_type="image/png", base64="iVBORw0KGgo=")
    shown = UserMessage(content=(Text(text="What?"), Image(source=source)))
    request = GenerationRequest(model="acme/m", messages=(shown,))
    assert source.base64 in json.dumps(wire.codec.encode(request, wire.target).body)


def leaks(error: UpstreamError) -> list[str]:
    """What must not be shown of a provider's words and is."""
    return [secret for secret in SECRETS if secret in error.message]
