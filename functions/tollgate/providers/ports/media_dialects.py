"""Departures of servers of pictures and of sound from OpenAI's, for `dialect.Dialect`."""

from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from tollgate.core.request import Need, SoundFormat

Path = Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9._~/{}-]*(\?[A-Za-z0-9=&._-]+)?$")]
# Families of models whose pictures have bodies of their own behind one host.
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


def _sort_options(options: tuple[ImageOption, ...]) -> tuple[ImageOption, ...]:
    """Return the options in one order, each once."""
    return tuple(sorted(set(options)))


class ImagesDialect(BaseModel):
    """Departures of a server of pictures from OpenAI's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    family: ImageFamily = Field(
        default="gemini",
        description="The family of models whose bodies the formats gemini and bedrock write.",
    )
    path: Path | None = Field(
        default=None, description="The path of requests, in place of the format's own."
    )
    images_max: Annotated[int, Field(ge=1, le=10)] = Field(
        default=1, description="Pictures of one request; the gateway sends more in several."
    )
    takes: Annotated[tuple[ImageOption, ...], AfterValidator(_sort_options)] = Field(
        default=(),
        description="OpenAI's options that are taken; others are left out and reported in "
        "`x-tollgate-adapted`.",
    )
    size: Literal["size", "width_height", "aspect_ratio", "none"] = Field(
        default="size", description="The fields with the size; with `none` it is left out."
    )
    sizes_by_name: bool = Field(
        default=False,
        description="Whether the format gemini has `imageSize` (1K, 2K, 4K) for the model.",
    )
    model_field: Literal["model", "model_name"] = Field(
        default="model", description="The field with the model: Hyperbolic's is `model_name`."
    )
    format_field: Literal["output_format", "response_extension"] = Field(
        default="output_format", description="The field with the format of the pictures."
    )
    base64: Literal["b64_json", "base64"] | None = Field(
        default=None,
        description="The word of `response_format` for pictures in the reply, if it is taken.",
    )
    urls: bool = Field(default=False, description="Whether `response_format` may be `url`.")
    edits: Literal["form", "reference_images"] | None = Field(
        default=None,
        description="How pictures to edit are sent: as a form to `/images/edits`, or as URLs in a "
        "field of this name.",
    )
    tokens: bool = Field(
        default=False, description="Whether the server reports the tokens that it charges for."
    )


def _sort_sounds(sounds: tuple[SoundFormat, ...]) -> tuple[SoundFormat, ...]:
    """Return the forms in one order, each once."""
    return tuple(sorted(set(sounds)))


class SpeechDialect(BaseModel):
    """Departures of a server of speech from OpenAI's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path | None = Field(
        default=None, description="The path of requests, in place of the format's own."
    )
    characters_max: Annotated[int, Field(ge=1, le=65_536)] = Field(
        default=4096, description="Characters of the text of one request."
    )
    sounds: Annotated[tuple[SoundFormat, ...], AfterValidator(_sort_sounds)] = Field(
        default=tuple(sorted(get_args(SoundFormat))),
        description="The forms of sound that the server makes.",
    )
    raw_pcm: bool = Field(
        default=False,
        description="Whether `pcm` is requested as `raw` with `response_encoding: pcm_s16le`.",
    )
    instructions: bool = Field(
        default=False, description="Whether instructions are taken; else they are reported."
    )
    speed: bool = Field(default=True, description="Whether a speed is taken; else it is reported.")
    usage: Literal["characters", "events", "none"] = Field(
        default="characters",
        description="What usage is known by: the characters of the text, which are counted here; "
        "the tokens that the events of the stream state (OpenAI's with `stream_format: sse`); or "
        "nothing, and tokens are estimated.",
    )


class TranscriptionDialect(BaseModel):
    """Departures of a server of transcripts from Whisper behind OpenAI's API."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    translates: bool = Field(default=False, description="Whether it translates into English.")
    segments: bool = Field(
        default=True, description="Whether it has `verbose_json`, of which subtitles are made."
    )
    words: bool = Field(default=False, description="Whether it has the times of words.")
    speakers: bool = Field(default=False, description="Whether it has `diarized_json`.")
    streams: bool = Field(
        default=False, description="Whether it streams words; else they come all at once."
    )
    logprobs: bool = Field(
        default=False, description="Whether it has log probabilities; else this is reported."
    )
    prompt: bool = Field(default=True, description="Whether it takes a prompt; else reported.")
    chunking: bool = Field(
        default=False, description="Whether it takes a `chunking_strategy`; else reported."
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
