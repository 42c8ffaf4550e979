"""C82: what each format sends to speak a text, and reads of a documented answer.

The answers are written after the documentation that the codecs name; none is recorded.
"""

import json
import wave
from base64 import b64encode
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import pytest

from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.events import Ended, Output, StreamEvent, StreamGrammar, UsageReported
from tollgate.core.usage import Usage
from tollgate.core.work.speech import SpeechRequest
from tollgate.providers.ports.base import Frame, Target, WireRequest
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import WIRE_FORMATS
from tollgate.providers.shared.sound import SOUND_BYTES_MAX, wav_header

MP3 = b"ID3\x04sound"
SAMPLES = bytes(range(200))
GEMINI_SOUND = "audio/L16;codec=pcm;rate=24000"


def work(**fields: Any) -> SpeechRequest:
    return SpeechRequest(**{"model": "acme/v", "text": "Hé", "voice": "alloy", **fields})


def target(**speech: Any) -> Target:
    return Target(
        provider="there",
        model="acme/v",
        upstream_model="v:1",
        dialect=Dialect.model_validate({"speech": speech}),
    )


def sent(format_: str, request: SpeechRequest | None = None, **speech: Any) -> WireRequest:
    return (
        WIRE_FORMATS[format_].stream_codecs["speech"]().encode(request or work(), target(**speech))
    )


def decoded(
    format_: str,
    *frames: bytes | dict[str, Any],
    request: SpeechRequest | None = None,
    **speech: Any,
) -> list[StreamEvent]:
    decoder = (
        WIRE_FORMATS[format_].stream_codecs["speech"]().decoder(request or work(), target(**speech))
    )
    grammar, events = StreamGrammar(), []
    for each in frames:
        data = each if isinstance(each, bytes) else json.dumps(each).encode()
        events += decoder.feed(Frame(data=data))
    events += decoder.end()
    for event in events:
        grammar.accept(event)
    assert isinstance(events[-1], Ended)
    return events


def sound_of(events: Sequence[StreamEvent]) -> bytes:
    return b"".join(
        piece for event in events if isinstance(event, Output) for piece in event.pieces
    )


def usage_of(events: Sequence[StreamEvent]) -> Usage:
    usage = Usage()
    for event in events:
        if isinstance(event, UsageReported):
            usage = usage.update(event.usage)
    return usage


def spoken(data: bytes, finish: str | None = None, kind: str = GEMINI_SOUND) -> dict[str, Any]:
    part = {"inlineData": {"mimeType": kind, "data": b64encode(data).decode()}}
    candidate: dict[str, Any] = {"content": {"parts": [part], "role": "model"}}
    if finish:
        candidate["finishReason"] = finish
    counts = {"promptTokenCount": 4, "candidatesTokenCount": 25, "totalTokenCount": 29}
    details = [{"modality": "AUDIO", "tokenCount": 25}]
    return {
        "candidates": [candidate],
        "usageMetadata": {**counts, "candidatesTokensDetails": details},
        "modelVersion": "v-1",
    }


def test_what_is_sent() -> None:
    fields = {"model": "v:1", "input": "Hé", "voice": "alloy", "response_format": "mp3"}
    plain = sent("openai_chat")
    assert (plain.path, plain.body, plain.is_raw) == ("/audio/speech", fields, True)
    events = sent("openai_chat", usage="events")
    assert (events.body, events.is_raw) == ({**fields, "stream_format": "sse"}, False)
    raw = sent("openai_chat", work(sound="pcm"), raw_pcm=True, path="/{model}/tts?v=1")
    assert raw.path == "/v%3A1/tts?v=1"
    assert raw.body == {**fields, "response_format": "raw", "response_encoding": "pcm_s16le"}
    hyperbolic = sent("hyperbolic", work(speed=2, instructions="Slowly."))
    assert (hyperbolic.path, hyperbolic.adapted) == ("/v1/audio/generation", ("instructions",))
    assert hyperbolic.body == {"text": "Hé", "voice": "alloy", "speed": 2}
    gemini = sent("gemini", work(sound="wav", speed=2))
    assert gemini.path == "/v1beta/models/v%3A1:streamGenerateContent?alt=sse"
    assert gemini.adapted == ("speed",)
    assert gemini.body == {
        "contents": [{"role": "user", "parts": [{"text": "Hé"}]}],
        "generationConfig": {
            "responseModalities": ["AUDIO"],
            "speechConfig": {
                "voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "alloy"}},
            },
        },
    }


def test_an_answer_of_hyperbolic_is_one_piece_of_mp3() -> None:
    events = decoded("hyperbolic", {"audio": b64encode(MP3).decode(), "duration": 1.85})
    assert sound_of(events) == MP3
    assert usage_of(events) == Usage(uncached_input_tokens=0, output_tokens=0, characters=2)


@pytest.mark.parametrize(
    "answer",
    [
        {"audio": b64encode(b"RIFF....WAVE").decode()},
        {"audio": "no base64!"},
        {"audio": ""},
        {"audio": 7},
        {"error": "no"},
        b"<html>",
    ],
)
def test_an_answer_of_hyperbolic_that_is_no_mp3_is_an_error(answer: Any) -> None:
    with pytest.raises(UpstreamError):
        decoded("hyperbolic", answer)


def test_sound_of_gemini_is_samples_and_its_tokens_are_reported() -> None:
    chunks = (spoken(SAMPLES), spoken(SAMPLES, "STOP"))
    events = decoded("gemini", *chunks, request=work(sound="pcm"))
    assert sound_of(events) == 2 * SAMPLES
    usage = usage_of(events)
    assert (usage.uncached_input_tokens, usage.output_tokens) == (4, 25)


def test_a_wav_of_gemini_has_a_header_that_readers_take() -> None:
    sound = sound_of(decoded("gemini", spoken(SAMPLES, "STOP"), request=work(sound="wav")))
    assert sound == wav_header() + SAMPLES
    with wave.open(BytesIO(wav_header(len(SAMPLES)) + SAMPLES)) as whole:
        form = (whole.getframerate(), whole.getnchannels(), whole.getsampwidth())
        assert form == (24_000, 1, 2)
        assert whole.readframes(1_000) == SAMPLES


@pytest.mark.parametrize(
    ("chunks", "code"),
    [
        ([spoken(SAMPLES, "SAFETY")], ErrorCode.CONTENT_FILTER),
        ([{"promptFeedback": {"blockReason": "SAFETY"}}], ErrorCode.CONTENT_FILTER),
        ([spoken(SAMPLES, "MAX_TOKENS")], ErrorCode.PROVIDER_UNAVAILABLE),
        ([spoken(SAMPLES)], ErrorCode.PROVIDER_UNAVAILABLE),
        ([spoken(SAMPLES, "STOP", "audio/mpeg")], ErrorCode.PROVIDER_UNAVAILABLE),
        ([spoken(SAMPLES, "STOP", "audio/L16;rate=16000")], ErrorCode.PROVIDER_UNAVAILABLE),
        ([{"candidates": [{"finishReason": "STOP"}]}], ErrorCode.PROVIDER_UNAVAILABLE),
        ([spoken(b"", "STOP")], ErrorCode.PROVIDER_UNAVAILABLE),
        ([{"error": {"code": 503, "message": "busy"}}], ErrorCode.PROVIDER_OVERLOADED),
        ([b"<html>"], ErrorCode.PROVIDER_UNAVAILABLE),
        ([], ErrorCode.PROVIDER_UNAVAILABLE),
    ],
)
def test_sound_of_gemini_that_is_not_complete_is_an_error(
    chunks: list[Any], code: ErrorCode
) -> None:
    with pytest.raises(UpstreamError) as raised:
        decoded("gemini", *chunks, request=work(sound="pcm"))
    assert raised.value.code == code


@pytest.mark.parametrize("format_", ["openai_chat", "gemini"])
def test_sound_has_a_limit(format_: str) -> None:
    half = bytes(SOUND_BYTES_MAX // 2 + 2)
    frames: list[Any] = [half, half] if format_ == "openai_chat" else [spoken(half), spoken(half)]
    with pytest.raises(UpstreamError, match="bytes"):
        decoded(format_, *frames, request=work(sound="pcm"))


def test_events_of_other_types_are_passed_over() -> None:
    audio = {"type": "speech.audio.delta", "audio": b64encode(MP3).decode()}
    done = {"type": "speech.audio.done", "usage": {"input_tokens": 3, "output_tokens": 9}}
    events = decoded("openai_chat", {"type": "new"}, audio, done, b"[DONE]", usage="events")
    assert sound_of(events) == MP3
    assert usage_of(events) == Usage(
        uncached_input_tokens=3, output_tokens=9, audio_output_tokens=9, characters=2
    )


@pytest.mark.parametrize(
    ("text", "speed", "likely"), [("a" * 4_096, None, 5_325), ("a" * 4_096, 0.5, 10_650)]
)
def test_the_tokens_of_speech_are_held_by_the_text_and_the_speed(
    text: str, speed: float | None, likely: int
) -> None:
    request = work(text=text, speed=speed)
    assert request.units.output_tokens == likely
    assert request.units_max.output_tokens > 4 * likely
    assert request.units.characters == 4_096
