"""The reply with embeddings.

https://platform.openai.com/docs/api-reference/embeddings/object (2026-08-21)
"""

from typing import Literal

from pydantic import Field

from tollgate.ingress.shared.wire.reply_models import Answer, TollgateMetadata


class EmbeddingObject(Answer):
    """The vector of one input."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str = Field(
        description="Numbers, or with `encoding_format: base64` little-endian 32-bit floats."
    )


class EmbeddingUsage(Answer):
    """The tokens of all inputs."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsReply(Answer):
    """The vectors, in the order of the inputs."""

    object: Literal["list"]
    data: list[EmbeddingObject]
    model: str
    usage: EmbeddingUsage
    tollgate_metadata: TollgateMetadata | None = None
