"""The chunks of a server that completes prompts, with only the fields that the gateway reads.

The shapes are OpenAI's legacy completion
(https://platform.openai.com/docs/api-reference/completions/object), DeepSeek's fill-in-the-middle
(https://api-docs.deepseek.com/api/create-completion), and Mistral's, whose choices are those of
chat (https://docs.mistral.ai/api/endpoint/fim), all seen 2026-11-22.
"""

from typing import Any, Final

import msgspec
from msgspec import Struct


class TextLogProbs(Struct, frozen=True):
    """Log probabilities as lists; the list of character offsets is not read."""

    tokens: list[str] = []
    token_logprobs: list[float | None] | None = None
    top_logprobs: list[dict[str, float | None] | None] | None = None


class MistralPiece(Struct, frozen=True):
    content: str | None = None


class Choice(Struct, frozen=True):
    """An answer; Mistral sends the text in `delta`, or in `message` if the answer is not
    streamed.
    """

    index: int | None = None
    text: str | None = None
    delta: MistralPiece | None = None
    message: MistralPiece | None = None
    logprobs: TextLogProbs | None = None
    finish_reason: str | None = None

    @property
    def any_text(self) -> str:
        """The text, from the field in which the server sends it."""
        if self.text is not None:
            return self.text
        piece = self.delta or self.message
        return (piece.content if piece else None) or ""


class Chunk(Struct, frozen=True):
    id: str | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    choices: list[Choice] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


# The decoder is not strict, because some servers write numbers as text or with a decimal point.
CHUNKS: Final = msgspec.json.Decoder(Chunk, strict=False)
