"""Models for transcription and translation requests and their replies.

https://platform.openai.com/docs/api-reference/audio/createTranscription (openai-python 3.52,
2026-11-22); `url` is Groq's: https://console.groq.com/docs/speech-to-text (2026-11-22).
https://platform.openai.com/docs/api-reference/audio/json-object (openai-python 3.52, 2026-11-22)
"""

from typing import Annotated, Final, Literal

from pydantic import Field, RootModel, Tag

from tollgate.ingress.shared.wire.reply_models import (
    Accounts,
    Answer,
    ErrorObject,
    TollgateMetadata,
)
from tollgate.ingress.shared.wire.request_fields import EndUser, RoutingFields
from tollgate.ingress.shared.wire.request_model import URL_LENGTH_MAX, Json, Wire, by_shape

_PROMPT_LENGTH_MAX: Final = 16_384
# The length of a data URL with 25 MiB of content.
_BASE64_LENGTH_MAX: Final = 36_000_000
_FILES: Final = "flac, mp3, mp4, m4a, mpga, ogg, wav or webm, at most 25 MiB"

ChunkingStrategy = Annotated[
    Annotated[Literal["auto"], Tag("<string>")] | Annotated[Json, Tag("<object>")],
    by_shape("'auto' or an object"),
]


class _RecordingFields(EndUser, RoutingFields):
    """The fields that both requests share, without the recording itself."""

    url: Annotated[str, Field(min_length=1, max_length=URL_LENGTH_MAX)] | None = Field(
        default=None,
        description="The public URL of the recording, instead of `file`, such as a presigned URL.",
    )
    file_id: Annotated[str, Field(min_length=1, max_length=256)] | None = Field(
        default=None, description="The id of an uploaded file, instead of `file`."
    )
    prompt: Annotated[str, Field(max_length=_PROMPT_LENGTH_MAX)] | None = None
    temperature: Annotated[float, Field(ge=0, le=1)] | None = None
    stream: bool | None = None


class _TranslationFields(_RecordingFields):
    response_format: Literal["json", "text", "srt", "verbose_json", "vtt"] | None = None


class _TranscriptionFields(_RecordingFields):
    response_format: (
        Literal["json", "text", "srt", "verbose_json", "vtt", "diarized_json"] | None
    ) = None
    language: Annotated[str, Field(pattern=r"^[A-Za-z]{2,20}(-[A-Za-z0-9]{2,8})?$")] | None = None
    timestamp_granularities: (
        Annotated[list[Literal["word", "segment"]], Field(max_length=2)] | None
    ) = None
    include: Annotated[list[Literal["logprobs"]], Field(max_length=1)] | None = None
    chunking_strategy: ChunkingStrategy | None = None


class _FileOfForm(Wire):
    file: bytes | None = Field(default=None, description=f"The recording as a file: {_FILES}.")


class _FileInJson(Wire):
    file: Annotated[str, Field(max_length=_BASE64_LENGTH_MAX)] | None = Field(
        default=None, description=f"The recording as base64 or a data URL: {_FILES}."
    )


class TranslationForm(_TranslationFields, _FileOfForm):
    """The fields of POST /v1/audio/translations as a form."""


class TranslationBody(_TranslationFields, _FileInJson):
    """The body of POST /v1/audio/translations; null means the same as omitting a field."""


class TranscriptionForm(_TranscriptionFields, _FileOfForm):
    """The fields of POST /v1/audio/transcriptions as a form."""


class TranscriptionBody(_TranscriptionFields, _FileInJson):
    """The body of POST /v1/audio/transcriptions; null means the same as omitting a field."""


class DurationUsage(Answer):
    """The billed seconds."""

    type: Literal["duration"]
    seconds: int
    cost: float | None = Field(default=None, description="US dollars; only in the last event.")


class InputTokenDetails(Answer):
    """Audio tokens and text tokens of the input."""

    audio_tokens: int
    text_tokens: int


class TokenUsage(Answer):
    """The billed tokens."""

    type: Literal["tokens"]
    input_tokens: int
    input_token_details: InputTokenDetails
    output_tokens: int
    total_tokens: int
    cost: float | None = Field(default=None, description="US dollars; only in the last event.")


class TranscriptSegment(Answer):
    """A segment in `verbose_json`, with times in seconds; unknown fields are omitted."""

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
    """A segment by one speaker, with times in seconds."""

    type: Literal["transcript.text.segment"]
    id: str
    start: float
    end: float
    text: str
    speaker: str


class TranscriptWord(Answer):
    """A word with its times in seconds."""

    word: str
    start: float
    end: float


class TokenProbability(Answer):
    """The log probability of a token."""

    token: str | None = None
    logprob: float | None = None
    bytes: list[int] | None = None


class TranscriptReply(Answer):
    """A transcript; only `verbose_json` and `diarized_json` have details besides the text."""

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
    """An addition to the text."""

    type: Literal["transcript.text.delta"]
    delta: str
    logprobs: list[TokenProbability] | None = None


class TranscriptDone(Accounts):
    """The last event, with the complete text, usage and cost."""

    type: Literal["transcript.text.done"]
    text: str
    logprobs: list[TokenProbability] | None = None
    usage: DurationUsage | TokenUsage


class TranscriptEvent(RootModel[TranscriptDelta | SpeakerSegment | TranscriptDone]):
    """The JSON data of an event."""


class TranscriptFailure(Accounts):
    """The last event of a failed stream."""

    type: Literal["error"]
    error: ErrorObject
    usage: DurationUsage | TokenUsage
