"""The table of the kinds of work, with the facts about them that other packages read."""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

# A generation is of kind `chat`, whatever its client format; the other kinds are subclasses of
# `InputWork`.
WorkKind = Literal[
    "chat",
    "embedding",
    "rerank",
    "moderation",
    "decision",
    "image",
    "speech",
    "transcription",
    "video",
]

# The price keys that every kind may have: two rates, their source, and the date of the last check.
_COMMON: Final = frozenset({"input", "request", "source", "checked"})


class KindOfWork(Struct, frozen=True, kw_only=True):
    """The facts about one kind of work."""

    route: str
    """The path under `/v1` at which callers request this kind of work."""
    field_of_input: str
    """The request field that holds the input."""
    field_of_media: str = ""
    """The field that holds images or audio; empty if `field_of_input` holds all inputs."""
    makes: str
    """OpenRouter's name for the output."""
    parameters: frozenset[str] = frozenset()
    """The optional parameters shown in model lists; for chat, they follow from the endpoint."""
    rates: frozenset[str] = frozenset()
    """The price keys that the kind may have; empty for chat, which may have all of them."""
    rates_of_results: tuple[str, ...] = ()
    """Rates for the output. A price sets at least one of them; for free output, the rate is 0."""
    is_job: bool = False
    """True if a worker does the work later, so that no guardrail of the gateway can judge it."""
    is_judged_by_guardrail: bool = False
    """True if on Bedrock, a guardrail rather than a model does this kind of work."""

    @property
    def field_with_media(self) -> str:
        """The field to name when an image or a recording is refused."""
        return self.field_of_media or self.field_of_input


WORK_KINDS: Final[Mapping[WorkKind, KindOfWork]] = {
    "chat": KindOfWork(route="/chat/completions", field_of_input="messages", makes="text"),
    "embedding": KindOfWork(
        route="/embeddings",
        field_of_input="input",
        makes="embeddings",
        parameters=frozenset({"dimensions", "encoding_format", "input_type"}),
        rates=_COMMON,
    ),
    "rerank": KindOfWork(
        route="/rerank",
        field_of_input="documents",
        makes="rerank",
        parameters=frozenset({"return_documents", "top_n"}),
        rates=_COMMON | {"search"},
    ),
    "moderation": KindOfWork(
        route="/moderations",
        field_of_input="input",
        makes="moderation",
        rates=_COMMON | {"image", "text_units"},
        is_judged_by_guardrail=True,
    ),
    "decision": KindOfWork(
        route="/decisions",
        field_of_input="input",
        makes="decisions",
        parameters=frozenset({"prompt_cache_key", "prompt_cache_options", "safety_identifier"}),
        rates=_COMMON | {"cache_read", "cache_write"},
    ),
    "image": KindOfWork(
        route="/images/generations",
        field_of_input="prompt",
        field_of_media="images",
        makes="image",
        parameters=frozenset({"background", "n", "output_format", "quality", "size"}),
        rates=_COMMON | {"output", "image_input", "image_output", "image", "cache_read"},
        rates_of_results=("image", "image_output", "output"),
    ),
    "speech": KindOfWork(
        route="/audio/speech",
        field_of_input="input",
        makes="audio",
        parameters=frozenset({"instructions", "response_format", "speed", "voice"}),
        rates=_COMMON | {"output", "audio_output", "characters"},
        rates_of_results=("characters", "audio_output", "output"),
    ),
    "transcription": KindOfWork(
        route="/audio/transcriptions",
        field_of_input="file",
        makes="transcription",
        parameters=frozenset({"language", "prompt", "response_format", "temperature"}),
        rates=_COMMON | {"output", "audio_input", "audio_hour"},
        rates_of_results=("audio_hour", "audio_input", "output"),
    ),
    "video": KindOfWork(
        route="/videos",
        field_of_input="prompt",
        field_of_media="input_reference",
        makes="video",
        parameters=frozenset({"seconds", "size"}),
        rates=_COMMON | {"video_second"},
        rates_of_results=("video_second",),
        is_job=True,
    ),
}
