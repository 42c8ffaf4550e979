"""The legacy completion and its stream chunks, as they are published.

The published schema is built from these models; replies themselves are written by
`ingress.completions.render`, and tests hold the two together.
https://platform.openai.com/docs/api-reference/completions/object (2026-11-22)
"""

from typing import Literal

from pydantic import Field

from tollgate.ingress.shared.wire.reply_models import (
    Accounts,
    Answer,
    ErrorObject,
    PartialAccounts,
    Usage,
)

CompletionFinish = Literal["stop", "length", "content_filter"]


class CompletionLogProbs(Answer):
    """Log probabilities of the tokens of a text: four lists of one length."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float | None]] = Field(description="Alternatives by their text.")
    text_offset: list[int] = Field(description="The first character of each token in `text`.")


class CompletionChoice(Answer):
    """One answer."""

    text: str
    index: int = Field(description="Of its prompt's first answer, `n` times the prompt's place.")
    logprobs: CompletionLogProbs | None = Field(description="Null where they are not known.")
    finish_reason: CompletionFinish
    native_finish_reason: str | None = Field(description="The provider's own word.")


class Completion(Accounts):
    """A whole reply."""

    id: str
    object: Literal["text_completion"]
    created: int = Field(description="Unix time in seconds.")
    model: str = Field(description="The slug of the model that served.")
    system_fingerprint: str | None = None
    episode_id: str
    choices: list[CompletionChoice]
    usage: Usage


class CompletionChunkChoice(Answer):
    """More of one answer."""

    text: str
    index: int
    logprobs: CompletionLogProbs | None
    finish_reason: CompletionFinish | None
    native_finish_reason: str | None = None


class CompletionChunk(PartialAccounts):
    """One frame of a stream; the last one has usage and the accounts, and no choices."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    system_fingerprint: str | None = None
    episode_id: str
    choices: list[CompletionChunkChoice]
    usage: Usage | None = None


class CompletionFailure(Accounts):
    """The last frame of a stream that failed: an error and the partial usage, without choices."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    system_fingerprint: str | None = None
    episode_id: str
    error: ErrorObject
    usage: Usage
