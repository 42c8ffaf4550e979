"""Renders generated pictures as text, for formats that have no field for pictures."""

from tollgate.core.content import MadeImage


def image_markdown(image: MadeImage) -> str:
    """Return the picture as Markdown; the link is usually a data URL with the picture's bytes."""
    return f"![image]({image.url})"
