"""The form of requested pictures, by which providers price them."""

from msgspec import Struct


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
