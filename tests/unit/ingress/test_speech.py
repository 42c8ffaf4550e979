"""Speech as a client format: any request is understood or refused, and events are as published.

Keeps C6, C82.
"""

import json
from base64 import b64decode
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from openai.types.audio import SpeechCreateParams

from tests.clocks import FixedClock
from tests.strategies import usages
from tests.unit.ingress.samples import SERVED, record
from tests.unit.ingress.test_parse_anything import json_values
from tollgate.core.errors import ErrorCode, RequestError, UpstreamError
from tollgate.core.events import Output
from tollgate.core.ids import IdSource
from tollgate.core.usage import Usage
from tollgate.core.work.speech import SpeechRequest
from tollgate.ingress.base import ParsedWork
from tollgate.ingress.work.speech.format import SoundRenderer, Speech, SpeechEventsRenderer
from tollgate.ingress.work.speech.models import SpeechBody, SpeechEvent, SpeechFailure

BROKEN = UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, "The connection broke.")
CALL = ParsedWork(request=SpeechRequest(model="m", text="Hi", voice="v"), stream=True)
requests = st.fixed_dictionaries(
    {"model": st.just("m"), "input": st.just("Hi") | st.text(), "voice": st.just("v")},
    optional=dict.fromkeys(
        SpeechBody.model_fields.keys() - {"model", "input", "voice"}, json_values
    ),
)


@given(request=requests | json_values)
def test_c6_c82_any_json_is_understood_or_refused(request: Any) -> None:
    refused = None
    try:
        Speech(IdSource(FixedClock())).parse(json.dumps(request).encode())
    except RequestError as error:
        refused = error
    assert refused is None or refused.code is ErrorCode.INVALID_REQUEST


def test_every_field_of_the_official_sdk_is_known() -> None:
    assert set(SpeechCreateParams.__annotations__) <= set(SpeechBody.model_fields)


@given(pieces=st.lists(st.binary(min_size=1), min_size=1, max_size=4), usage=usages)
def test_c6_c82_events_are_as_published_and_have_the_bytes(
    pieces: list[bytes], usage: Usage
) -> None:
    renderer = SpeechEventsRenderer(CALL, SERVED, credits_per_usd=Decimal(1))
    outputs = [Output(pieces=(piece,)) for piece in pieces]
    deltas = b"".join(map(renderer.feed, outputs))
    *events, done = read(deltas + renderer.close(record(usage=usage)))
    for event in (*events, done):
        SpeechEvent.model_validate(event)
    assert b"".join(b64decode(event["audio"]) for event in events) == b"".join(pieces)
    assert b"".join(map(SoundRenderer(CALL, SERVED).feed, outputs)) == b"".join(pieces)
    [failed] = read(renderer.fail(BROKEN, record(usage=usage)))
    SpeechFailure.model_validate(failed)


def read(frames: bytes) -> list[dict[str, Any]]:
    return [json.loads(frame.removeprefix(b"data: ")) for frame in frames.split(b"\n\n")[:-1]]
