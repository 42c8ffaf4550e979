"""A request to transcribe a recording, and the resulting transcript."""

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

from msgspec import Struct
from msgspec.structs import replace
from typing_extensions import override

from tollgate.core.json_value import JsonValue
from tollgate.core.request import Modality, Need
from tollgate.core.usage import Units, Usage
from tollgate.core.work.base import InputWork
from tollgate.core.work.kinds import WorkKind
from tollgate.core.work.recording import RECORDING_BYTES_MAX, Recording, longest_s

# Models that are billed by token count 10 tokens per second of audio (OpenAI) or 32 (Gemini), and
# people speak about 4 tokens per second. https://ai.google.dev/gemini-api/docs/audio (2026-11-22)
_INPUT_TOKENS_PER_SECOND: Final = 10
_INPUT_TOKENS_PER_SECOND_MAX: Final = 32
_OUTPUT_TOKENS_PER_SECOND: Final = 4
_OUTPUT_TOKENS_PER_SECOND_MAX: Final = 8
_OUTPUT_TOKENS_LEAST: Final = 2_048

TranscriptDetail = Literal["segments", "words", "speakers"]


class TranscriptionRequest(InputWork, frozen=True, kw_only=True):
    """A recording, and the requested form of the transcript."""

    kind: ClassVar[WorkKind] = "transcription"
    modalities: ClassVar[frozenset[Modality]] = frozenset({"audio"})

    recording: Recording | None
    """None until the recording has been fetched from the URL or file in the request."""
    translates: bool = False
    """True to translate into English, whatever language is spoken."""
    language: str | None = None
    prompt: str | None = None
    temperature: float | None = None
    details: frozenset[TranscriptDetail] = frozenset()
    """The details that the transcript must include besides its text."""
    logprobs: bool = False
    chunking: str | Mapping[str, JsonValue] | None = None

    @property
    @override
    def own_texts(self) -> tuple[str, ...]:
        return (self.prompt,) if self.prompt else ()

    @property
    @override
    def bytes_per_input(self) -> tuple[int, ...]:
        return (len((self.prompt or "").encode()),)

    @property
    @override
    def units(self) -> Units:
        seconds = self.recording.seconds if self.recording else self._seconds_max
        return Units(
            media_tokens=_INPUT_TOKENS_PER_SECOND * seconds,
            output_tokens=_OUTPUT_TOKENS_PER_SECOND * seconds,
            audio_seconds=seconds,
        )

    @property
    @override
    def units_max(self) -> Units:
        seconds = self._seconds_max
        return Units(
            media_tokens=_INPUT_TOKENS_PER_SECOND_MAX * seconds,
            output_tokens=max(_OUTPUT_TOKENS_LEAST, _OUTPUT_TOKENS_PER_SECOND_MAX * seconds),
            audio_seconds=seconds,
        )

    @override
    def by_medium(self, likely: Usage) -> Usage:
        return replace(likely, audio_input_tokens=self.units.media_tokens)

    @property
    @override
    def needs(self) -> frozenset[Need]:
        return self.details | {"translation"} if self.translates else frozenset(self.details)

    @property
    def _seconds_max(self) -> int:
        if self.recording is None:
            return longest_s(RECORDING_BYTES_MAX, "mp3")
        return self.recording.seconds_max


class TokenLogprob(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The log probability of one token, as OpenAI writes it."""

    token: str | None = None
    logprob: float | None = None
    bytes: tuple[int, ...] | None = None


class Segment(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A section of a transcript, with its times in seconds and the provider's
    confidence figures.
    """

    id: int | str | None = None
    seek: int | None = None
    start: float
    end: float
    text: str
    speaker: str | None = None
    tokens: tuple[int, ...] | None = None
    temperature: float | None = None
    avg_logprob: float | None = None
    compression_ratio: float | None = None
    no_speech_prob: float | None = None


class Word(Struct, frozen=True, kw_only=True):
    """One word of a transcript, with its times in seconds."""

    word: str
    start: float
    end: float


class Transcript(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The transcript, which is the only piece of the result; fields that were not reported are
    None.
    """

    text: str
    language: str | None = None
    duration_s: float | None = None
    segments: tuple[Segment, ...] | None = None
    words: tuple[Word, ...] | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None


class TranscriptPreview(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The next words of a transcript, or a complete segment."""

    delta: str = ""
    logprobs: tuple[TokenLogprob, ...] | None = None
    segment: Segment | None = None
