"""The transcript and its events as they are published.

https://platform.openai.com/docs/api-reference/audio/json-object (openai-python 3.52, 2026-11-22)
"""

from typing import Literal

from pydantic import Field, RootModel

from tollgate.ingress.shared.wire.reply_models import (
    Accounts,
    Answer,
    ErrorObject,
    TollgateMetadata,
)


class DurationUsage(Answer):
    """The seconds that were billed."""

    type: Literal["duration"]
    seconds: int
    cost: float | None = Field(default=None, description="US dollars, in the last event.")


class InputTokenDetails(Answer):
    """Parts of the input."""

    audio_tokens: int
    text_tokens: int


class TokenUsage(Answer):
    """The tokens that were billed."""

    type: Literal["tokens"]
    input_tokens: int
    input_token_details: InputTokenDetails
    output_tokens: int
    total_tokens: int
    cost: float | None = Field(default=None, description="US dollars, in the last event.")


class TranscriptSegment(Answer):
    """A stretch of `verbose_json`, in seconds; what its provider does not measure is left out."""

    id: int | str
    seek: int | None = None
    start: float
    end: float
    text: str
    speaker: str | None = None
    tokens: list[int] | None = None
    temperature: float | None = None
    avg_logprob: float | None = None
    compression_ratio: float | None = None
    no_speech_prob: float | None = None


class SpeakerSegment(Answer):
    """A stretch of one speaker."""

    type: Literal["transcript.text.segment"]
    id: str
    start: float
    end: float
    text: str
    speaker: str


class TranscriptWord(Answer):
    """A word, in seconds."""

    word: str
    start: float
    end: float


class TokenProbability(Answer):
    """The log probability of a token."""

    token: str | None = None
    logprob: float | None = None
    bytes: list[int] | None = None


class TranscriptReply(Answer):
    """A transcript; `json` has its text, `verbose_json` and `diarized_json` more."""

    text: str
    task: Literal["transcribe", "translate"] | None = None
    language: str | None = None
    duration: float | None = None
    segments: list[TranscriptSegment | SpeakerSegment] | None = None
    words: list[TranscriptWord] | None = None
    logprobs: list[TokenProbability] | None = None
    usage: DurationUsage | TokenUsage
    tollgate_metadata: TollgateMetadata | None = None


class TranscriptDelta(Answer):
    """The next words."""

    type: Literal["transcript.text.delta"]
    delta: str
    logprobs: list[TokenProbability] | None = None


class TranscriptDone(Accounts):
    """The last event: the whole text, usage and price."""

    type: Literal["transcript.text.done"]
    text: str
    logprobs: list[TokenProbability] | None = None
    usage: DurationUsage | TokenUsage


class TranscriptEvent(RootModel[TranscriptDelta | SpeakerSegment | TranscriptDone]):
    """The data of one event."""


class TranscriptFailure(Accounts):
    """The event that ends a stream which failed."""

    type: Literal["error"]
    error: ErrorObject
    usage: DurationUsage | TokenUsage
