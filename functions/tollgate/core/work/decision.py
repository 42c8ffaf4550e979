"""A request to decide typed questions about a text, a conversation or images."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final, Self

import msgspec
from msgspec import field
from msgspec.structs import replace
from typing_extensions import override

from tollgate.core.content import Image, InlineMedia
from tollgate.core.json_value import JsonObject, JsonValue
from tollgate.core.request import Modality
from tollgate.core.usage import Units
from tollgate.core.work.base import InputWork
from tollgate.core.work.kinds import WorkKind
from tollgate.core.work.pictures import (
    READ_TOKENS_LIKELY,
    READ_TOKENS_MAX,
    inline_picture,
    picture_urls,
)

# Upper estimate of the bytes that a server adds around the questions; the real number is not
# published.
_SERVER_BYTES: Final = 256
# Fields whose values are names that the format defines, not text from the caller.
_NO_TEXT: Final = frozenset({"call_id", "detail", "id", "mode", "phase", "role", "status", "type"})


class DecisionRequest(InputWork, frozen=True, kw_only=True):
    """Evidence, and questions about it that one request answers together.

    Evidence and questions are the caller's own JSON, except that the URL of each image is null.
    `pictures` contains the images in the order of the JSON.
    """

    kind: ClassVar[WorkKind] = "decision"

    evidence: JsonValue
    """A string, or a list of messages and calls with their outputs."""
    questions: tuple[dict[str, JsonValue], ...]
    pictures: tuple[Image, ...] = ()
    options: JsonObject = field(default_factory=dict)
    """Options for the provider's prompt cache, by name."""

    @property
    @override
    def own_texts(self) -> tuple[str, ...]:
        return tuple(_texts([self.evidence, *self.questions]))

    @property
    @override
    def bytes_per_input(self) -> tuple[int, ...]:
        written = msgspec.json.encode([self.evidence, self.questions])
        return (len(written) + _SERVER_BYTES,)

    @property
    @override
    def modalities(self) -> frozenset[Modality]:
        return frozenset({"text", "image"}) if self.pictures else frozenset({"text"})

    @property
    @override
    def addresses(self) -> frozenset[str]:
        return picture_urls(self.pictures)

    @override
    def inline(self, found: Mapping[str, InlineMedia]) -> Self:
        pictures = tuple(inline_picture(picture, found) for picture in self.pictures)
        return replace(self, pictures=pictures)

    @property
    @override
    def units(self) -> Units:
        return Units(media_tokens=len(self.pictures) * READ_TOKENS_LIKELY)

    @property
    @override
    def units_max(self) -> Units:
        return Units(media_tokens=len(self.pictures) * READ_TOKENS_MAX)


def _texts(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for name, inner in value.items():
                if name not in _NO_TEXT:
                    yield from _texts(inner)
        case list() | tuple():
            for inner in value:
                yield from _texts(inner)
        case _:
            pass
