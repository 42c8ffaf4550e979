"""The requests for a transcript and their replies, as clients see them.

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
# 25 MiB of content as base64, in a data URL with a media type.
_BASE64_LENGTH_MAX: Final = 36_000_000
_FILES: Final = "flac, mp3, mp4, m4a, mpga, ogg, wav or webm, of 25 MiB at most"

ChunkingStrategy = Annotated[
    Annotated[Literal["auto"], Tag("<string>")] | Annotated[Json, Tag("<object>")],
    by_shape("'auto' or an object"),
]


class _RecordingFields(EndUser, RoutingFields):
    """The fields that both requests have besides the recording itself."""

    url: Annotated[str, Field(min_length=1, max_length=URL_LENGTH_MAX)] | None = Field(
        default=None,
        description="Where the recording is fetched from, in place of `file`: a public address, "
        "such as a presigned one.",
    )
    file_id: Annotated[str, Field(min_length=1, max_length=256)] | None = Field(
        default=None, description="The id of an uploaded file, in place of `file`."
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
    file: bytes | None = Field(
        default=None, description=f"The recording, a file of the form: {_FILES}."
    )


class _FileInJson(Wire):
    file: Annotated[str, Field(max_length=_BASE64_LENGTH_MAX)] | None = Field(
        default=None, description=f"The recording as base64 or a data URL: {_FILES}."
    )


class TranslationForm(_TranslationFields, _FileOfForm):
    """The fields of POST /v1/audio/translations as a form."""


class TranslationBody(_TranslationFields, _FileInJson):
    """The body of POST /v1/audio/translations. Null means the same as leaving a field out."""


class TranscriptionForm(_TranscriptionFields, _FileOfForm):
    """The fields of POST /v1/audio/transcriptions as a form."""


class TranscriptionBody(_TranscriptionFields, _FileInJson):
    """The body of POST /v1/audio/transcriptions. Null means the same as leaving a field out."""


class DurationUsage(Answer):
    """The seconds that were billed."""

    type: Literal["duration"]
    seconds: int
    cost: float | None = Field(default=None, description="US dollars, in the last event.")


class InputTokenDetails(Answer):
    """Input tokens, split into those of sound and those of text."""

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
    """A segment of `verbose_json`, in seconds; fields that the provider lacks are left out."""

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
    """A segment that one speaker speaks, in seconds."""

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
    """A transcript; `json` has the text alone, `verbose_json` and `diarized_json` details, too."""

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
