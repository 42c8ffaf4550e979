"""The speed of an endpoint, measured by how long its answers took."""

from msgspec import Struct


class AnswerTime(Struct, frozen=True, kw_only=True):
    """The time of one answer, or of several added up."""

    answers: int = 1
    first_token_ms: int
    output_tokens: int = 0
    """Tokens that the provider counted; 0 for an answer without a count."""
    output_ms: int = 0
    """The time of the answers with a count of tokens, from the request to the last token."""

    def plus(self, other: "AnswerTime") -> "AnswerTime":
        """Return the sum of two times."""
        return AnswerTime(
            answers=self.answers + other.answers,
            first_token_ms=self.first_token_ms + other.first_token_ms,
            output_tokens=self.output_tokens + other.output_tokens,
            output_ms=self.output_ms + other.output_ms,
        )


class Speed(Struct, frozen=True, kw_only=True):
    """The speed that callers may expect of an endpoint now."""

    latency_ms: int
    """Milliseconds from the request to the first token."""
    tokens_per_s: float | None = None
    """Output tokens per second over the whole answer; None if no answer had a count of tokens."""
