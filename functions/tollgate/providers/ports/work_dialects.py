"""The sections of a dialect that each state a server's departures for one kind of work.

A new kind whose servers differ adds a class and a field of `WorkDialects` here.
"""

from typing import Annotated, Literal, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from tollgate.core.request import InputType, Need, SoundFormat

_Path = Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9._~/{}-]*(\?[A-Za-z0-9=&._-]+)?$")]
RequestPath = Annotated[
    _Path | None, Field(description="The path of requests, in place of the format's own.")
]
_InputTypeName = Annotated[str, StringConstraints(min_length=1, max_length=64)] | None
_Name = TypeVar("_Name", bound=str)


def sort_names(names: tuple[_Name, ...]) -> tuple[_Name, ...]:
    """Return the distinct names in one order, so that equal catalogs have equal hashes."""
    return tuple(sorted(set(names)))


class DialectSection(BaseModel):
    """A section of a dialect; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class InputTypeNames(DialectSection):
    """A server's name for each use of vectors; a use without a name is not sent."""

    query: _InputTypeName = Field(default=None, description="The name for search queries.")
    document: _InputTypeName = Field(
        default=None, description="The name for documents that are searched."
    )
    classification: _InputTypeName = Field(
        default=None, description="The name for inputs that are classified."
    )
    clustering: _InputTypeName = Field(
        default=None, description="The name for inputs that are clustered."
    )

    def name_of(self, use: InputType) -> str | None:
        """Return the server's name for a use, None if the server does not know the use."""
        name: str | None = getattr(self, use)
        return name


# Model families that share a host but have different bodies for embeddings.
EmbeddingFamily = Literal["cohere", "nova", "titan"]


class EmbeddingsDialect(DialectSection):
    """Departures of a server from OpenAI's embeddings."""

    family: EmbeddingFamily = Field(
        default="titan", description="The model family whose bodies the format bedrock writes."
    )
    path: RequestPath = None
    inputs_max: Annotated[int, Field(ge=1, le=2048)] = Field(
        default=2048,
        description="The most inputs of one request; the gateway splits larger requests.",
    )
    base64: bool = Field(
        default=False,
        description="Whether the server accepts `encoding_format`; else the gateway encodes.",
    )
    token_ids: bool = Field(default=False, description="Whether inputs may be token ids.")
    dimensions_field: Literal["dimensions", "output_dimension"] = Field(
        default="dimensions", description="The field that states the size of vectors."
    )
    input_type_field: Literal["input_type", "task"] = Field(
        default="input_type", description="The field that states the use of vectors."
    )
    input_types: InputTypeNames = Field(
        default_factory=InputTypeNames,
        description="The server's names for the uses of vectors that it knows.",
    )


class RerankDialect(DialectSection):
    """Departures of a reranker from Jina's."""

    path: RequestPath = None
    limit_field: Literal["top_n", "top_k"] = Field(
        default="top_n", description="The field that states the number of documents to return."
    )
    by_tokens: bool = Field(
        default=False,
        description="Whether the provider charges for tokens even if an answer counts search "
        "units; the gateway estimates tokens that an answer does not count.",
    )


# Model families that share a host but have different bodies for pictures.
ImageFamily = Literal["gemini", "imagen", "nova", "stability"]
ImageOption = Literal[
    "background",
    "input_fidelity",
    "mask",
    "moderation",
    "output_compression",
    "output_format",
    "quality",
    "stream",
    "style",
]


class ImagesDialect(DialectSection):
    """Departures of a server from OpenAI's pictures."""

    family: ImageFamily = Field(
        default="gemini",
        description="The model family whose bodies the formats gemini and bedrock write.",
    )
    path: RequestPath = None
    images_max: Annotated[int, Field(ge=1, le=10)] = Field(
        default=1, description="The most pictures of one request; the gateway splits larger ones."
    )
    takes: Annotated[tuple[ImageOption, ...], AfterValidator(sort_names)] = Field(
        default=(),
        description="OpenAI's options that the server accepts; others are left out and reported "
        "in `x-tollgate-adapted`.",
    )
    size: Literal["size", "width_height", "aspect_ratio", "none"] = Field(
        default="size", description="The fields that state the size; `none` leaves the size out."
    )
    sizes_by_name: bool = Field(
        default=False,
        description="Whether the model accepts `imageSize` (1K, 2K, 4K), in the format gemini.",
    )
    model_field: Literal["model", "model_name"] = Field(
        default="model", description="The field that names the model; Hyperbolic's is `model_name`."
    )
    format_field: Literal["output_format", "response_extension"] = Field(
        default="output_format", description="The field that states the format of the pictures."
    )
    base64: Literal["b64_json", "base64"] | None = Field(
        default=None,
        description="The value of `response_format` that requests pictures in the reply; absent "
        "if the server has none.",
    )
    urls: bool = Field(default=False, description="Whether `response_format` may be `url`.")
    edits: Literal["form", "reference_images"] | None = Field(
        default=None,
        description="How pictures to edit are sent: as a form to `/images/edits`, or as URLs in "
        "the field `reference_images`.",
    )
    tokens: bool = Field(
        default=False, description="Whether the server reports the tokens that it charges for."
    )


class SpeechDialect(DialectSection):
    """Departures of a server from OpenAI's speech."""

    path: RequestPath = None
    characters_max: Annotated[int, Field(ge=1, le=65_536)] = Field(
        default=4096, description="The most characters of one request's text."
    )
    sounds: Annotated[tuple[SoundFormat, ...], AfterValidator(sort_names)] = Field(
        default=tuple(sorted(get_args(SoundFormat))),
        description="The sound formats that the server makes.",
    )
    raw_pcm: bool = Field(
        default=False,
        description="Whether the server calls `pcm` `raw` with `response_encoding: pcm_s16le`.",
    )
    instructions: bool = Field(
        default=False,
        description="Whether the server accepts instructions; else they are left out and reported.",
    )
    speed: bool = Field(
        default=True,
        description="Whether the server accepts a speed; else it is left out and reported.",
    )
    usage: Literal["characters", "events", "none"] = Field(
        default="characters",
        description="Where usage comes from: `characters` counts the text in the gateway; `events` "
        "reads the tokens that the stream's events state (OpenAI's, with `stream_format: sse`); "
        "`none` estimates tokens.",
    )


class TranscriptionDialect(DialectSection):
    """Departures of a server from OpenAI's transcripts by Whisper."""

    translates: bool = Field(
        default=False, description="Whether the server translates into English."
    )
    segments: bool = Field(
        default=True,
        description="Whether the server has `verbose_json`, from which subtitles are made.",
    )
    words: bool = Field(default=False, description="Whether the server states the times of words.")
    speakers: bool = Field(default=False, description="Whether the server has `diarized_json`.")
    streams: bool = Field(
        default=False,
        description="Whether the server streams words; else the text comes as one event.",
    )
    logprobs: bool = Field(
        default=False,
        description="Whether the server returns log probabilities; else their lack is reported.",
    )
    prompt: bool = Field(
        default=True,
        description="Whether the server accepts a prompt; else it is left out and reported.",
    )
    chunking: bool = Field(
        default=False,
        description="Whether the server accepts a `chunking_strategy`; else it is left out and "
        "reported.",
    )

    @property
    def met(self) -> frozenset[Need]:
        """The needs of a request that the server meets."""
        stated: tuple[tuple[Need, bool], ...] = (
            ("segments", self.segments),
            ("words", self.words),
            ("speakers", self.speakers),
            ("translation", self.translates),
        )
        return frozenset(need for need, is_met in stated if is_met)


class WorkDialects(DialectSection):
    """The sections of a dialect by kind of work; those of chat are fields of `Dialect` itself."""

    embeddings: EmbeddingsDialect = Field(
        default_factory=EmbeddingsDialect, description="For models of the kind embedding."
    )
    rerank: RerankDialect = Field(
        default_factory=RerankDialect, description="For models of the kind rerank."
    )
    images: ImagesDialect = Field(
        default_factory=ImagesDialect, description="For models of the kind image."
    )
    speech: SpeechDialect = Field(
        default_factory=SpeechDialect, description="For models of the kind speech."
    )
    transcription: TranscriptionDialect = Field(
        default_factory=TranscriptionDialect, description="For models of the kind transcription."
    )

    @property
    def met_by_work(self) -> frozenset[Need]:
        """The needs of work other than chat that the server meets."""
        return self.transcription.met | frozenset(self.speech.sounds)
