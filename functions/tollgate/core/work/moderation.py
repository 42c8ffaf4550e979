"""A request to judge whether texts and images are harmful."""

from collections.abc import Mapping
from typing import ClassVar, Final, Self

from msgspec.structs import replace
from typing_extensions import override

from tollgate.core.content import Image, InlineMedia, Text
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

# A partly used unit is charged in full: https://aws.amazon.com/bedrock/pricing (2026-11-22).
CHARACTERS_PER_TEXT_UNIT: Final = 1_000

Subject = tuple[Text | Image, ...]


class ModerationRequest(InputWork, frozen=True, kw_only=True):
    """Inputs that are judged independently of each other."""

    kind: ClassVar[WorkKind] = "moderation"

    subjects: tuple[Subject, ...]
    """The parts of each input; the parts of one input are judged together."""
    entities: tuple[str, ...] = ()
    """The types of personal information that an analyzer looks for; all types if empty."""
    score_min: float | None = None
    """The lowest score of an analyzer's findings; None for the analyzer's own."""

    @property
    def pictures(self) -> tuple[Image, ...]:
        """The images of all inputs, in order."""
        return tuple(part for part in self._parts if isinstance(part, Image))

    @property
    @override
    def own_texts(self) -> tuple[str, ...]:
        return tuple(part.text for part in self._parts if isinstance(part, Text))

    @property
    @override
    def bytes_per_input(self) -> tuple[int, ...]:
        return tuple(
            sum(len(part.text.encode()) for part in subject if isinstance(part, Text))
            for subject in self.subjects
        )

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
        return replace(
            self,
            subjects=tuple(
                tuple(
                    inline_picture(part, found) if isinstance(part, Image) else part
                    for part in subject
                )
                for subject in self.subjects
            ),
        )

    @property
    @override
    def units(self) -> Units:
        characters = (
            sum(len(part.text) for part in subject if isinstance(part, Text))
            for subject in self.subjects
        )
        return Units(
            media_tokens=len(self.pictures) * READ_TOKENS_LIKELY,
            images=len(self.pictures),
            text_units=sum(map(_text_units, characters)),
        )

    @property
    @override
    def units_max(self) -> Units:
        return Units(
            media_tokens=len(self.pictures) * READ_TOKENS_MAX,
            images=len(self.pictures),
            # This is an upper bound, because characters are counted as bytes and each part begins a
            # new unit.
            text_units=sum(_text_units(len(text.encode())) for text in self.own_texts),
        )

    @property
    def _parts(self) -> Subject:
        return tuple(part for subject in self.subjects for part in subject)


def _text_units(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TEXT_UNIT)
