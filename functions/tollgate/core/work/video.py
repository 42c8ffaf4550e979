"""A request for a video, made from a text and possibly from a picture."""

from collections.abc import Mapping
from typing import ClassVar, Final, Self

from msgspec.structs import replace
from typing_extensions import override

from tollgate.core.content import FileReference, Image, InlineMedia
from tollgate.core.request import Modality
from tollgate.core.usage import Units
from tollgate.core.work.base import InputWork
from tollgate.core.work.kinds import WorkKind
from tollgate.core.work.pictures import Picture, inline_picture, picture_urls

# OpenAI's defaults, which are always sent, because the price depends on both:
# openai-python 3.52.0, types/video_create_params.py (2026-11-28).
SECONDS_DEFAULT: Final = 4
SIZE_DEFAULT: Final = "720x1280"
SECONDS_MAX: Final = 60


class VideoRequest(InputWork, frozen=True, kw_only=True):
    """A description of the video to make, and the picture that guides it."""

    kind: ClassVar[WorkKind] = "video"

    prompt: str
    seconds: int = SECONDS_DEFAULT
    size: str = SIZE_DEFAULT
    """`WIDTHxHEIGHT`."""
    reference: Image | None = None

    @property
    @override
    def own_texts(self) -> tuple[str, ...]:
        return (self.prompt,)

    @property
    @override
    def bytes_per_input(self) -> tuple[int, ...]:
        return (len(self.prompt.encode()),)

    @property
    @override
    def units(self) -> Units:
        return Units(video_seconds=self.seconds)

    @property
    @override
    def picture(self) -> Picture:
        return Picture(size=self.size)

    @property
    @override
    def modalities(self) -> frozenset[Modality]:
        return frozenset({"text", "image"}) if self.reference else frozenset({"text"})

    @property
    @override
    def addresses(self) -> frozenset[str]:
        return picture_urls(filter(None, (self.reference,)))

    @property
    @override
    def files(self) -> tuple[FileReference, ...]:
        source = None if self.reference is None else self.reference.source
        return (source,) if isinstance(source, FileReference) else ()

    @override
    def inline(self, found: Mapping[str, InlineMedia]) -> Self:
        if self.reference is None:
            return self
        return replace(self, reference=inline_picture(self.reference, found))
