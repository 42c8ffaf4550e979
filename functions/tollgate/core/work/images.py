"""A request for images, made from text alone or from other images, and the resulting images."""

from collections.abc import Mapping
from typing import ClassVar, Final, Literal, Self

from msgspec import Struct
from msgspec.structs import replace
from typing_extensions import override

from tollgate.core.content import FileReference, Image, InlineMedia
from tollgate.core.errors import invalid_request
from tollgate.core.request import Modality
from tollgate.core.usage import Units, Usage
from tollgate.core.work.base import InputWork
from tollgate.core.work.kinds import WorkKind
from tollgate.core.work.pictures import (
    READ_TOKENS_LIKELY,
    READ_TOKENS_MAX,
    Picture,
    inline_picture,
    picture_urls,
)

MASK_TYPE: Final = "image/png"

Background = Literal["transparent", "opaque", "auto"]
Moderation = Literal["low", "auto"]
PictureFormat = Literal["png", "jpeg", "webp"]
Delivery = Literal["b64_json", "url"]
Style = Literal["vivid", "natural"]
Fidelity = Literal["low", "high"]

# The tokens of one generated image. The highest known count is 13,400, for 3840x2160 at high
# quality from gpt-image-2 ($0.401 at $30 per million, litellm 1.109.1). Nothing is published about
# higher qualities, so twice as many tokens are held for `xhigh`, and four times as many for `max`.
_TOKENS_MADE_MAX: Final = 16_384
_TOKENS_MADE_LIKELY: Final = 1_700
_TIMES_BY_QUALITY: Final[Mapping[str, int]] = {"xhigh": 2, "max": 4}
# https://developers.openai.com/api/docs/guides/image-generation (2026-11-22)
_PARTIAL_TOKENS: Final = 100


class ImageRequest(InputWork, frozen=True, kw_only=True):
    """A description of the images to make, and the images to edit."""

    kind: ClassVar[WorkKind] = "image"

    prompt: str
    images: tuple[Image, ...] = ()
    """The images to edit; empty to make images from the text alone."""
    mask: Image | None = None
    """An image whose transparent areas mark where to change the first of `images`."""
    count: int = 1
    size: str | None = None
    """`WIDTHxHEIGHT`. As with every option below, None uses the model's default."""
    quality: str | None = None
    background: Background | None = None
    moderation: Moderation | None = None
    output_format: PictureFormat | None = None
    output_compression: int | None = None
    style: Style | None = None
    fidelity: Fidelity | None = None
    """The fidelity with which faces and features in `images` are preserved."""
    delivery: Delivery | None = None
    """The image itself, or a URL hosted by the provider; None for the provider's default."""
    partial_images: int = 0
    """The maximum number of previews in a stream."""

    @property
    @override
    def own_texts(self) -> tuple[str, ...]:
        return (self.prompt,)

    @property
    @override
    def bytes_per_input(self) -> tuple[int, ...]:
        # OpenAI bills each image like a separate request with the same prompt (2026-11-22).
        return (len(self.prompt.encode()),) * self.count

    @property
    def pictures_read(self) -> tuple[Image, ...]:
        """The images that the model reads; the mask comes last."""
        return self.images if self.mask is None else (*self.images, self.mask)

    @property
    @override
    def units(self) -> Units:
        return self._units(READ_TOKENS_LIKELY, _TOKENS_MADE_LIKELY)

    @property
    @override
    def units_max(self) -> Units:
        times = _TIMES_BY_QUALITY.get(self.quality or "", 1)
        return self._units(READ_TOKENS_MAX, _TOKENS_MADE_MAX * times)

    def _units(self, tokens_read: int, tokens_made: int) -> Units:
        tokens_per_picture = tokens_made + self.partial_images * _PARTIAL_TOKENS
        return Units(
            images=self.count,
            media_tokens=self.count * len(self.pictures_read) * tokens_read,
            output_tokens=self.count * tokens_per_picture,
        )

    @override
    def by_medium(self, likely: Usage) -> Usage:
        return replace(
            likely,
            image_input_tokens=self.units.media_tokens,
            image_output_tokens=likely.output_tokens,
        )

    @property
    @override
    def picture(self) -> Picture:
        return Picture(size=self.size, quality=self.quality)

    @property
    @override
    def modalities(self) -> frozenset[Modality]:
        return frozenset({"text", "image"}) if self.images else frozenset({"text"})

    @property
    @override
    def addresses(self) -> frozenset[str]:
        return picture_urls(self.pictures_read)

    @property
    @override
    def files(self) -> tuple[FileReference, ...]:
        sources = (image.source for image in self.pictures_read)
        return tuple(source for source in sources if isinstance(source, FileReference))

    @override
    def inline(self, found: Mapping[str, InlineMedia]) -> Self:
        mask = None if self.mask is None else inline_picture(self.mask, found)
        match mask:
            case Image(source=InlineMedia(media_type=found_type)) if found_type != MASK_TYPE:
                named = self.mask is not None and isinstance(self.mask.source, FileReference)
                field = "mask.file_id" if named else "mask.image_url"
                raise invalid_request(f"{field} must refer to a PNG image.", field)
            case _:
                images = tuple(inline_picture(image, found) for image in self.images)
                return replace(self, images=images, mask=mask)

    def split(self, count_max: int) -> tuple[Self, ...]:
        """Split the request into requests for at most `count_max` images each."""
        whole, rest = divmod(self.count, count_max)
        counts = (count_max,) * whole + ((rest,) if rest else ())
        return (self,) if len(counts) == 1 else tuple(replace(self, count=n) for n in counts)


class ImagePiece(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An image in the result, or a preview; its JSON is one piece of the result."""

    b64_json: str | None = None
    url: str | None = None
    """An http(s) URL instead of `b64_json`."""
    revised_prompt: str | None = None
    """The prompt as rewritten by the provider."""
    size: str | None = None
    """`WIDTHxHEIGHT`, read from the image itself."""
    output_format: str | None = None
    quality: str | None = None
    background: str | None = None
    preview: int | None = None
    """The number of a preview, from 0; None for an image in the result."""
