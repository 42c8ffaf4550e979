"""The replies with pictures.

https://developers.openai.com/api/reference/resources/images, as openai-python 3.52.0 has it
(2026-11-22).
"""

from typing import Literal

from pydantic import Field

from tollgate.ingress.shared.wire.reply_models import Accounts, Answer, ErrorObject


class PictureTokens(Answer):
    """The tokens of texts and of pictures."""

    text_tokens: int
    image_tokens: int


class ImageUsage(Answer):
    """The tokens of all pictures; 0 where a provider charges for pictures alone."""

    input_tokens: int
    input_tokens_details: PictureTokens
    output_tokens: int
    output_tokens_details: PictureTokens
    total_tokens: int
    cost: float | None = Field(default=None, description="US dollars, exact to a billionth.")


class ImageObject(Answer):
    """One picture, as base64 or behind a URL of its provider's."""

    b64_json: str | None = None
    url: str | None = None
    revised_prompt: str | None = None


class ImagesReply(Accounts):
    """The pictures, and what all of them have in common."""

    created: int
    data: list[ImageObject]
    background: Literal["transparent", "opaque"] | None = None
    output_format: str | None = None
    quality: str | None = None
    size: str | None = Field(default=None, description="`WIDTHxHEIGHT` of the first.")
    usage: ImageUsage


class ImageEvent(ImageObject):
    """A preview of a picture, or a picture; the last one has the price of all."""

    type: Literal[
        "image_generation.partial_image",
        "image_generation.completed",
        "image_edit.partial_image",
        "image_edit.completed",
    ]
    created_at: int
    background: str
    output_format: str
    quality: str
    size: str
    partial_image_index: int | None = None
    usage: ImageUsage | None = None
    credits_used: float | None = None
    model_used: str | None = None
    provider_used: str | None = None


class ImageFailure(Accounts):
    """The event that ends a broken stream."""

    type: Literal["error"]
    error: ErrorObject
    usage: ImageUsage
