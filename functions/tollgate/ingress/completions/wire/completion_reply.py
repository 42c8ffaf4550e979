"""Models of the legacy completion and its stream chunks, for the published schema.

`ingress.completions.render` writes the replies without these models; tests check that both agree.
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
    """Log probabilities of the tokens of a text, as four lists of equal length."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float | None]] = Field(description="Alternatives, by text.")
    text_offset: list[int] = Field(description="Where each token begins in `text`.")


class CompletionChoice(Answer):
    """One answer."""

    text: str
    index: int = Field(description="The answers of prompt p, from 0, begin at index `n` times p.")
    logprobs: CompletionLogProbs | None = Field(description="Null if not known.")
    finish_reason: CompletionFinish
    native_finish_reason: str | None = Field(description="The reason as the provider names it.")


class _Head(Answer):
    id: str
    object: Literal["text_completion"]
    created: int = Field(description="Unix time in seconds.")
    model: str = Field(description="The slug of the model that served.")
    system_fingerprint: str | None = None
    episode_id: str


class Completion(Accounts, _Head):
    """A whole reply."""

    choices: list[CompletionChoice]
    usage: Usage


class CompletionChunkChoice(Answer):
    """The next piece of one answer."""

    text: str
    index: int
    logprobs: CompletionLogProbs | None
    finish_reason: CompletionFinish | None
    native_finish_reason: str | None = None


class CompletionChunk(PartialAccounts, _Head):
    """One frame of a stream; the last frame has usage and accounts, and no choices."""

    choices: list[CompletionChunkChoice]
    usage: Usage | None = None


class CompletionFailure(Accounts, _Head):
    """The last frame of a failed stream: an error and the usage so far, without choices."""

    error: ErrorObject
    usage: Usage
