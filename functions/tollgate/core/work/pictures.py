"""The form of requested pictures, by which providers price them, and the size of those read."""

from typing import Final

from msgspec import Struct

# Pictures that are read are billed by their pixels, about 1,500 tokens each whatever their bytes.
# OpenAI's largest are 6,144 and 1,105 of its tiles, at high fidelity; Gemini's are 1,120.
READ_TOKENS_LIKELY: Final = 1_500
READ_TOKENS_MAX: Final = 8_192


class Picture(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The size and the quality that a request states; None is the provider's own choice."""

    size: str | None = None
    """Width and height in pixels, such as `1536x1024`."""
    quality: str | None = None


def sides(size: str) -> tuple[int, int] | None:
    """Return width and height of a size such as `1536x1024`; None for other words."""
    width, _, height = size.partition("x")
    is_size = all(side.isascii() and side.isdigit() for side in (width, height))
    return (int(width), int(height)) if is_size else None
