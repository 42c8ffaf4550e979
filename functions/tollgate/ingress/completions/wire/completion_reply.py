"""Models for legacy completions and their stream chunks, for the API description.

`ingress.completions.render` writes replies without these models; tests check that replies match.
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
    """The log probabilities of the tokens in a text, as four lists of equal length."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float | None]] = Field(description="Alternative tokens, by text.")
    text_offset: list[int] = Field(description="The offset of each token in `text`.")


class CompletionChoice(Answer):
    """An answer."""

    text: str
    index: int = Field(
        description="The answers to prompt p, counted from 0, start at index `n` times p."
    )
    logprobs: CompletionLogProbs | None = Field(description="Null if not known.")
    finish_reason: CompletionFinish
    native_finish_reason: str | None = Field(description="The provider's name for the reason.")


class _Head(Answer):
    id: str
    object: Literal["text_completion"]
    created: int = Field(description="Unix time in seconds.")
    model: str = Field(description="The slug of the model that answered.")
    system_fingerprint: str | None = None
    episode_id: str


class Completion(Accounts, _Head):
    """A non-streamed reply."""

    choices: list[CompletionChoice]
    usage: Usage


class CompletionChunkChoice(Answer):
    """An addition to an answer."""

    text: str
    index: int
    logprobs: CompletionLogProbs | None
    finish_reason: CompletionFinish | None
    native_finish_reason: str | None = None


class CompletionChunk(PartialAccounts, _Head):
    """A frame in a stream; the last frame has usage and cost, but no choices."""

    choices: list[CompletionChunkChoice]
    usage: Usage | None = None


class CompletionFailure(Accounts, _Head):
    """The last frame in a failed stream: an error and the usage so far, without choices."""

    error: ErrorObject
    usage: Usage
