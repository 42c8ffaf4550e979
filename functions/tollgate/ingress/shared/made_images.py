"""Shows pictures of an answer as text, in formats whose answers have no place for them."""

from tollgate.core.content import MadeImage


def image_markdown(image: MadeImage) -> str:
    """Return the picture as Markdown, which holds its bytes."""
    return f"![image]({image.url})"
