"""Decodes a transcript, either a whole answer or a stream of events.

https://platform.openai.com/docs/api-reference/audio/transcript-text-delta-event (openai-python
3.52, 2026-11-22). A server that cannot stream sends a whole transcript.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.json import encode as encode_json

from tollgate.core.events import Ended, Output, Partial, Started, StreamEvent, UsageReported
from tollgate.core.usage import Usage
from tollgate.core.work.transcription import (
    Segment,
    TokenLogprob,
    Transcript,
    TranscriptionRequest,
    TranscriptPreview,
    Word,
)
from tollgate.providers.codecs.openai_transcription.encode import TRANSCRIPT_BYTES_MAX, encode
from tollgate.providers.ports.base import Frame, StreamedWorkCodec, Target
from tollgate.providers.shared.counts import count_of
from tollgate.providers.shared.openai_errors import (
    parse_openai_reply_error,
    parse_openai_stream_error,
)
from tollgate.providers.shared.refusals import early_close_error, malformed_error
from tollgate.providers.shared.vectors import parse_body

_SECONDS_MAX: Final = 1_000_000


class _TokenDetails(Struct, frozen=True):
    audio_tokens: object = None


class _Usage(Struct, frozen=True):
    seconds: object = None
    input_tokens: object = None
    output_tokens: object = None
    input_token_details: _TokenDetails | None = None


class _Answer(Struct, frozen=True):
    """A whole transcript, or one event."""

    type: str | None = None
    text: str | None = None
    delta: str | None = None
    language: str | None = None
    duration: object = None
    """The length of the recording in seconds; vLLM sends it as text."""
    segments: tuple[Segment, ...] | None = None
    words: tuple[Word, ...] | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    usage: _Usage | None = None
    error: Any = None
    id: str | None = None
    start: float | None = None
    end: float | None = None
    speaker: str | None = None


class TranscriptDecoder:
    """Decodes one answer."""

    def __init__(self, work: TranscriptionRequest, target: Target) -> None:
        self._work = work
        self._target = target
        self._segments: list[Segment] = []
        self._segments_bytes = 0
        self._started = False
        self._ended = False

    def feed(self, frame: Frame) -> Iterable[StreamEvent]:
        """Yield the events of one frame; raise UpstreamError for an error or unreadable frame."""
        if self._ended or not frame.data.startswith(b"{"):
            # The end marker and all frames after the end are ignored.
            if self._ended or frame.data.strip() == b"[DONE]":
                return
            raise malformed_error(self._target.provider, "an answer of unknown form")
        answer = parse_body(frame.data, _Answer, self._target)
        if answer.error is not None:
            raise parse_openai_stream_error(answer.error, self._target.provider)
        if not self._started:
            self._started = True
            yield Started()
        match answer.type:
            case "transcript.text.delta":
                yield from self._preview(
                    TranscriptPreview(delta=answer.delta or "", logprobs=answer.logprobs)
                )
            case "transcript.text.segment":
                self._segments_bytes += len(frame.data)
                if self._segments_bytes > TRANSCRIPT_BYTES_MAX:
                    raise malformed_error(
                        self._target.provider, f"more than {TRANSCRIPT_BYTES_MAX} bytes"
                    )
                segment = self._segment(answer)
                self._segments.append(segment)
                yield from self._preview(TranscriptPreview(segment=segment))
            case "transcript.text.done" | None:
                yield from self._whole(answer)
            case _:
                # The API may add event types, so unknown types are ignored.
                pass

    def end(self) -> Iterable[StreamEvent]:
        """Raise UpstreamError if the stream closed before the end of the answer."""
        if not self._ended:
            raise early_close_error(self._target.provider)
        return ()

    def _preview(self, preview: TranscriptPreview) -> Iterator[StreamEvent]:
        if preview.delta or preview.segment is not None:
            yield Partial(piece=encode_json(preview))

    def _segment(self, answer: _Answer) -> Segment:
        return Segment(
            id=answer.id,
            start=answer.start or 0.0,
            end=answer.end or 0.0,
            text=answer.text or "",
            speaker=answer.speaker,
        )

    def _whole(self, answer: _Answer) -> Iterator[StreamEvent]:
        segments = answer.segments or (tuple(self._segments) if self._segments else None)
        if answer.text is None:
            raise malformed_error(self._target.provider, "an answer without a text")
        wants_segments = self._work.details & {"segments", "speakers"}
        if wants_segments and segments is None and answer.text.strip():
            raise malformed_error(self._target.provider, "a transcript without segments")
        if "words" in self._work.details and answer.words is None and answer.text.strip():
            raise malformed_error(self._target.provider, "a transcript without words")
        self._check_times(segments or (), answer.words or ())
        duration_s = _seconds(answer.duration)
        transcript = Transcript(
            text=answer.text,
            language=answer.language,
            duration_s=duration_s,
            segments=segments,
            words=answer.words,
            logprobs=answer.logprobs if self._work.logprobs else None,
        )
        yield UsageReported(usage=_usage(answer.usage, duration_s), raw=_raw(answer.usage))
        yield Output(pieces=(encode_json(transcript),))
        yield Ended(finish="stop")
        self._ended = True

    def _check_times(self, segments: Iterable[Segment], words: Iterable[Word]) -> None:
        times = [time for segment in segments for time in (segment.start, segment.end)]
        times += [time for word in words for time in (word.start, word.end)]
        if not all(0 <= time <= _SECONDS_MAX for time in times):
            raise malformed_error(self._target.provider, "an impossible time")


def _usage(reported: _Usage | None, duration_s: float | None) -> Usage:
    """Return the tokens if the server reports them, otherwise the seconds if they are known,
    otherwise an empty usage.
    """
    if reported is not None:
        input_tokens = count_of(reported.input_tokens)
        if input_tokens is not None:
            details = reported.input_token_details
            return Usage(
                uncached_input_tokens=input_tokens,
                audio_input_tokens=count_of(details.audio_tokens) if details else None,
                output_tokens=count_of(reported.output_tokens),
            )
        duration_s = _seconds(reported.seconds) or duration_s
    if duration_s is None:
        return Usage()
    return Usage(uncached_input_tokens=0, output_tokens=0, audio_seconds=math.ceil(duration_s))


def _raw(reported: _Usage | None) -> dict[str, Any] | None:
    if reported is None:
        return None
    counts = {
        "seconds": _seconds(reported.seconds),
        "input_tokens": count_of(reported.input_tokens),
        "output_tokens": count_of(reported.output_tokens),
    }
    return {name: count for name, count in counts.items() if count is not None}


def _seconds(reported: object) -> float | None:
    """Return a length in seconds, which vLLM sends as text; None for an invalid length."""
    if isinstance(reported, str):
        try:
            reported = float(reported)
        except ValueError:
            return None
    if not isinstance(reported, int | float) or isinstance(reported, bool):
        return None
    return float(reported) if 0 <= reported <= _SECONDS_MAX else None


CODEC: Final = StreamedWorkCodec(
    encode=encode, decoder=TranscriptDecoder, error=parse_openai_reply_error
)
