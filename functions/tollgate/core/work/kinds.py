"""The one table of kinds of work: the facts that checks, refusals and lists of models read."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from tollgate.core.request import WorkKind

# The notes of every price, and the rates that any inputs may have.
_NOTED: Final = frozenset({"input", "request", "source", "checked"})


class KindOfWork(Struct, frozen=True, kw_only=True):
    """The facts about one kind of work that checks, refusals and lists of models read."""

    route: str
    """The path below `/v1` at which callers request this kind."""
    field_of_input: str
    """The field of a request that has the input."""
    field_of_media: str = ""
    """The field of inputs that are no text, where another field has them."""
    makes: str
    """OpenRouter's name for the output."""
    parameters: frozenset[str] = frozenset()
    """The optional parameters that lists of models name; those of chat follow from the endpoint."""
    rates: frozenset[str] = frozenset()
    """The keys that a price may have; a price of chat may have all."""
    rates_of_results: tuple[str, ...] = ()
    """The rates of which a price states one at least: a result that is free has a rate of 0."""


WORK_KINDS: Final[Mapping[WorkKind, KindOfWork]] = {
    "chat": KindOfWork(route="/chat/completions", field_of_input="messages", makes="text"),
    "embedding": KindOfWork(
        route="/embeddings",
        field_of_input="input",
        makes="embeddings",
        parameters=frozenset({"dimensions", "encoding_format", "input_type"}),
        rates=_NOTED,
    ),
    "rerank": KindOfWork(
        route="/rerank",
        field_of_input="documents",
        makes="rerank",
        parameters=frozenset({"return_documents", "top_n"}),
        rates=_NOTED | {"search"},
    ),
    "moderation": KindOfWork(
        route="/moderations",
        field_of_input="input",
        makes="moderation",
        rates=_NOTED | {"image", "text_units"},
    ),
    "image": KindOfWork(
        route="/images/generations",
        field_of_input="prompt",
        field_of_media="images",
        makes="image",
        parameters=frozenset({"background", "n", "output_format", "quality", "size"}),
        rates=_NOTED | {"output", "image_input", "image_output", "image", "cache_read"},
        rates_of_results=("image", "image_output", "output"),
    ),
    "speech": KindOfWork(
        route="/audio/speech",
        field_of_input="input",
        makes="audio",
        parameters=frozenset({"instructions", "response_format", "speed", "voice"}),
        rates=_NOTED | {"output", "audio_output", "characters"},
        rates_of_results=("characters", "audio_output", "output"),
    ),
    "transcription": KindOfWork(
        route="/audio/transcriptions",
        field_of_input="file",
        makes="transcription",
        parameters=frozenset({"language", "prompt", "response_format", "temperature"}),
        rates=_NOTED | {"output", "audio_input", "audio_hour"},
        rates_of_results=("audio_hour", "audio_input", "output"),
    ),
}
