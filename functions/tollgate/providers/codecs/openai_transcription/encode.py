"""Encodes a recording as the form for an OpenAI-like transcription server.

https://platform.openai.com/docs/api-reference/audio/createTranscription (openai-python 3.52,
2026-11-22). The gateway requests the most detailed response format that a server has, because some
servers report the length of the recording only in that format.
"""

from collections.abc import Iterator
from typing import Final

from pydantic_core import to_json

from tollgate.core.work.recording import RECORDING_TYPES
from tollgate.core.work.transcription import TranscriptionRequest
from tollgate.providers.ports.base import FormPart, Target, WireRequest

# Enough for ten hours of words with two timestamps each.
TRANSCRIPT_BYTES_MAX: Final = 16 * 1024 * 1024


def encode(work: TranscriptionRequest, target: Target) -> WireRequest:
    """Encode a request; it asks for a stream if the caller wants one and the server can stream."""
    dialect = target.dialect.transcription
    streams = work.stream and dialect.streams
    return WireRequest(
        path="/audio/translations" if work.translates else "/audio/transcriptions",
        body={"model": target.upstream_model},
        form=tuple(_parts(work, target, streams=streams)),
        adapted=tuple(_left_out(work, target)),
        reply_bytes_max=None if streams else TRANSCRIPT_BYTES_MAX,
    )


def _parts(work: TranscriptionRequest, target: Target, *, streams: bool) -> Iterator[FormPart]:
    dialect, recording = target.dialect.transcription, work.recording
    if recording is None:
        raise RuntimeError("the recording was not fetched")
    yield _text("model", target.upstream_model)
    if work.language is not None:
        yield _text("language", work.language)
    if work.prompt and dialect.prompt:
        yield _text("prompt", work.prompt)
    if work.temperature is not None:
        yield _text("temperature", f"{work.temperature:g}")
    if "speakers" in work.details:
        yield _text("response_format", "diarized_json")
    elif dialect.segments and not streams:
        yield _text("response_format", "verbose_json")
        for granularity in _granularities(work):
            yield _text("timestamp_granularities[]", granularity)
    else:
        yield _text("response_format", "json")
    if work.logprobs and dialect.logprobs:
        yield _text("include[]", "logprobs")
    chunking = work.chunking or ("auto" if "speakers" in work.details else None)
    if dialect.chunking and isinstance(chunking, str):
        yield _text("chunking_strategy", chunking)
    elif dialect.chunking and chunking is not None:
        yield _text("chunking_strategy", to_json(chunking).decode())
    if streams:
        yield _text("stream", "true")
    yield FormPart(
        name="file",
        content=recording.content,
        # Servers read the format from the extension. The caller's own file name may be private.
        file_name=f"recording.{recording.format}",
        media_type=RECORDING_TYPES[recording.format],
    )


def _granularities(work: TranscriptionRequest) -> Iterator[str]:
    if "words" in work.details:
        yield "word"
        if "segments" in work.details:
            yield "segment"


def _left_out(work: TranscriptionRequest, target: Target) -> Iterator[str]:
    dialect = target.dialect.transcription
    if work.prompt and not dialect.prompt:
        yield "prompt"
    if work.logprobs and not dialect.logprobs:
        yield "include"
    if work.chunking is not None and not dialect.chunking:
        yield "chunking_strategy"


def _text(name: str, value: str) -> FormPart:
    return FormPart(name=name, content=value.encode())
