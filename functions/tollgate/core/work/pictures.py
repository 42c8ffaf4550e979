"""Images in requests: the requested size and quality, and the tokens and sources of images that a
model reads.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.content import FileReference, Image, InlineMedia, MediaUrl

# Images that a model reads are billed by their pixels, at about 1,500 tokens each. The highest
# known counts are 6,144 (OpenAI, high fidelity), 1,105 (OpenAI, by tiles) and 1,120 (Gemini).
READ_TOKENS_LIKELY: Final = 1_500
READ_TOKENS_MAX: Final = 8_192


class Picture(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The requested size and quality of an image; None leaves the choice to the provider."""

    size: str | None = None
    """Width and height in pixels, such as `1536x1024`."""
    quality: str | None = None


def sides(size: str) -> tuple[int, int] | None:
    """Return the width and height in a size such as `1536x1024`; None for any other text."""
    width, _, height = size.partition("x")
    is_size = all(side.isascii() and side.isdigit() for side in (width, height))
    return (int(width), int(height)) if is_size else None


def picture_urls(images: Iterable[Image]) -> frozenset[str]:
    """Return the URLs among the sources of images."""
    return frozenset(image.source.url for image in images if isinstance(image.source, MediaUrl))


def inline_picture(image: Image, found: Mapping[str, InlineMedia]) -> Image:
    """Return an image with its content in place of a URL or file id found in `found`."""
    match image.source:
        case MediaUrl(url=name) | FileReference(id=name) if name in found:
            return replace(image, source=found[name])
        case _:
            return image
