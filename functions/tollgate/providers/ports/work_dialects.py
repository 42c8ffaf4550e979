"""The sections of a dialect for work other than chat, one section for each kind of work.

A new kind of work whose servers differ needs a class here, and a field of `WorkDialects`.
"""

from typing import Annotated, Literal, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from tollgate.core.request import InputType, Need, SoundFormat

_Path = Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9._~/{}-]*(\?[A-Za-z0-9=&._-]+)?$")]
RequestPath = Annotated[
    _Path | None, Field(description="Request path, overriding the format's default.")
]
_InputTypeName = Annotated[str, StringConstraints(min_length=1, max_length=64)] | None
_Name = TypeVar("_Name", bound=str)


def sort_names(names: tuple[_Name, ...]) -> tuple[_Name, ...]:
    """Return the distinct names in a fixed order, so that equal catalogs have equal hashes."""
    return tuple(sorted(set(names)))


class DialectSection(BaseModel):
    """A section of a dialect, which refuses unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class InputTypeNames(DialectSection):
    """A server's name for each use of vectors; a use without a name is not sent."""

    query: _InputTypeName = Field(default=None, description="The name for search queries.")
    document: _InputTypeName = Field(default=None, description="The name for documents to search.")
    classification: _InputTypeName = Field(
        default=None, description="The name for inputs to classify."
    )
    clustering: _InputTypeName = Field(default=None, description="The name for inputs to cluster.")

    def name_of(self, use: InputType) -> str | None:
        """Return the server's name for a use; None if the server has no name for it."""
        name: str | None = getattr(self, use)
        return name


# Model families on one host whose requests for embeddings have different bodies.
EmbeddingFamily = Literal["cohere", "nova", "titan"]


class EmbeddingsDialect(DialectSection):
    """The differences between a server and OpenAI's embeddings."""

    family: EmbeddingFamily = Field(
        default="titan",
        description="The model family, which determines the request bodies in the bedrock format.",
    )
    path: RequestPath = None
    inputs_max: Annotated[int, Field(ge=1, le=2048)] = Field(
        default=2048,
        description="The maximum number of inputs in a request; the gateway splits larger ones.",
    )
    base64: bool = Field(
        default=False,
        description="Whether the server accepts `encoding_format`; if not, the gateway encodes.",
    )
    token_ids: bool = Field(default=False, description="Whether inputs may be token ids.")
    dimensions_field: Literal["dimensions", "output_dimension"] = Field(
        default="dimensions", description="The field for the number of dimensions."
    )
    input_type_field: Literal["input_type", "task"] = Field(
        default="input_type", description="The field that says what the vectors are for."
    )
    input_types: InputTypeNames = Field(
        default_factory=InputTypeNames,
        description="The server's names for the uses of vectors that it supports.",
    )


class RerankDialect(DialectSection):
    """The differences between a reranker and Jina's."""

    path: RequestPath = None
    limit_field: Literal["top_n", "top_k"] = Field(
        default="top_n", description="The field for the number of documents to return."
    )
    by_tokens: bool = Field(
        default=False,
        description="Whether the provider charges for tokens even if it reports search units. If "
        "tokens are not reported, the gateway estimates them.",
    )


# Model families on one host whose requests for images have different bodies.
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
    """The differences between a server and OpenAI's images."""

    family: ImageFamily = Field(
        default="gemini",
        description="The model family, which determines the bodies in the gemini and bedrock "
        "formats.",
    )
    path: RequestPath = None
    images_max: Annotated[int, Field(ge=1, le=10)] = Field(
        default=1, description="The maximum number of images in a request; larger ones are split."
    )
    takes: Annotated[tuple[ImageOption, ...], AfterValidator(sort_names)] = Field(
        default=(),
        description="OpenAI's options that the server accepts; other options are left out and "
        "reported in `x-tollgate-adapted`.",
    )
    size: Literal["size", "width_height", "aspect_ratio", "none"] = Field(
        default="size", description="The fields for the size; with `none`, no size is sent."
    )
    sizes_by_name: bool = Field(
        default=False,
        description="Whether the model accepts `imageSize` (1K, 2K, 4K), in the gemini format.",
    )
    model_field: Literal["model", "model_name"] = Field(
        default="model", description="The field that names the model; Hyperbolic's is `model_name`."
    )
    format_field: Literal["output_format", "response_extension"] = Field(
        default="output_format", description="The field for the format of the images."
    )
    base64: Literal["b64_json", "base64"] | None = Field(
        default=None,
        description="The value of `response_format` that requests images inside the reply; absent "
        "if the server has none.",
    )
    urls: bool = Field(default=False, description="Whether `response_format` may be `url`.")
    edits: Literal["form", "reference_images"] | None = Field(
        default=None,
        description="How images to edit are sent: as a form to `/images/edits`, or as URLs in "
        "the field `reference_images`.",
    )
    tokens: bool = Field(
        default=False, description="Whether the server reports the tokens that it charges for."
    )


class SpeechDialect(DialectSection):
    """The differences between a server and OpenAI's speech."""

    path: RequestPath = None
    characters_max: Annotated[int, Field(ge=1, le=65_536)] = Field(
        default=4096, description="The maximum length of the text in characters."
    )
    sounds: Annotated[tuple[SoundFormat, ...], AfterValidator(sort_names)] = Field(
        default=tuple(sorted(get_args(SoundFormat))),
        description="The audio formats that the server can return.",
    )
    raw_pcm: bool = Field(
        default=False,
        description="Whether `pcm` is requested as `raw` with `response_encoding: pcm_s16le`.",
    )
    instructions: bool = Field(
        default=False,
        description="Whether the server accepts instructions; if not, they are left out and "
        "reported.",
    )
    speed: bool = Field(
        default=True,
        description="Whether the server accepts a speed; if not, it is left out and reported.",
    )
    usage: Literal["characters", "events", "none"] = Field(
        default="characters",
        description="The source of the usage. With `characters` the gateway counts the text, "
        "with `events` it reads tokens from the stream's events (OpenAI's, with "
        "`stream_format: sse`), and with `none` it estimates tokens.",
    )


class TranscriptionDialect(DialectSection):
    """The differences between a server and OpenAI's transcripts by Whisper."""

    translates: bool = Field(
        default=False, description="Whether the server translates into English."
    )
    segments: bool = Field(
        default=True,
        description="Whether the server supports `verbose_json`, which subtitles require.",
    )
    words: bool = Field(default=False, description="Whether the server returns word timestamps.")
    speakers: bool = Field(
        default=False, description="Whether the server supports `diarized_json`."
    )
    streams: bool = Field(
        default=False,
        description="Whether the server can stream; if not, the text arrives as one event.",
    )
    logprobs: bool = Field(
        default=False,
        description="Whether the server returns log probabilities; if not, they are reported "
        "as missing.",
    )
    prompt: bool = Field(
        default=True,
        description="Whether the server accepts a prompt; if not, it is left out and reported.",
    )
    chunking: bool = Field(
        default=False,
        description="Whether the server accepts a `chunking_strategy`; if not, it is left out and "
        "reported.",
    )

    @property
    def met(self) -> frozenset[Need]:
        """The needs of a request that the server satisfies."""
        needs: tuple[tuple[Need, bool], ...] = (
            ("segments", self.segments),
            ("words", self.words),
            ("speakers", self.speakers),
            ("translation", self.translates),
        )
        return frozenset(need for need, is_met in needs if is_met)


class WorkDialects(DialectSection):
    """The sections of a dialect by kind of work; the fields for chat are in `Dialect` itself."""

    embeddings: EmbeddingsDialect = Field(
        default_factory=EmbeddingsDialect, description="For models of kind `embedding`."
    )
    rerank: RerankDialect = Field(
        default_factory=RerankDialect, description="For models of kind `rerank`."
    )
    images: ImagesDialect = Field(
        default_factory=ImagesDialect, description="For models of kind `image`."
    )
    speech: SpeechDialect = Field(
        default_factory=SpeechDialect, description="For models of kind `speech`."
    )
    transcription: TranscriptionDialect = Field(
        default_factory=TranscriptionDialect, description="For models of kind `transcription`."
    )

    @property
    def met_by_work(self) -> frozenset[Need]:
        """The needs of work other than chat that the server satisfies."""
        return self.transcription.met | frozenset(self.speech.sounds)
