"""Models for the parts that replies in all OpenAI formats share, and for the error envelope.

https://platform.openai.com/docs/api-reference/chat/object (2026-08-21)
"""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tollgate.core.limits import LimitKind, StatedBy


class Answer(BaseModel):
    """The base class of reply models; it forbids unknown fields, so all fields are documented."""

    model_config = ConfigDict(extra="forbid")


class PromptTokensDetails(Answer):
    """Parts of the prompt; a part that the provider does not report is 0."""

    cached_tokens: int
    cache_write_tokens: int
    audio_tokens: int


class CompletionTokensDetails(Answer):
    """Parts of the output; a part that the provider does not report is 0."""

    reasoning_tokens: int
    audio_tokens: int


class InputTokensDetails(Answer):
    """Parts of the input; a part that the provider does not report is 0."""

    cached_tokens: int
    cache_write_tokens: int


class OutputTokensDetails(Answer):
    """Parts of the output; a part that the provider does not report is 0."""

    reasoning_tokens: int


class Usage(Answer):
    """Usage and cost."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails
    completion_tokens_details: CompletionTokensDetails
    cost: float = Field(description="US dollars, exact to a billionth.")


class RoutedAttempt(Answer):
    """An attempt at an endpoint; `error` is null if the attempt succeeded."""

    provider: str
    model: str
    status: int | None
    error: str | None
    ms: int


class TollgateMetadata(Answer):
    """The routing of the request, for callers who send `x-tollgate-metadata: enabled`."""

    requested: str
    route: str | None
    rule: int | None = Field(description="The number of the matching rule in the route, from 1.")
    attempts: list[RoutedAttempt]
    reused_generation: str | None = Field(
        description="The generation whose answer was reused; null for a new answer."
    )
    catalog_sha: str


class RoutingFacts(Answer):
    """The routing of the request; a field that does not apply is omitted."""

    fallback_from: str | None = Field(
        default=None, description="The model that was tried first and failed."
    )
    fallback_depth: int | None = None
    adapted: list[str] | None = Field(default=None, description="Parameters that had no effect.")
    tollgate_metadata: TollgateMetadata | None = None


class Accounts(RoutingFacts):
    """Model, provider and cost of an answer; a non-streamed reply also has them in headers."""

    credits_used: float
    model_used: str | None
    provider_used: str | None


class PartialAccounts(RoutingFacts):
    """Model, provider and cost of a streamed answer; only the last frame has them."""

    credits_used: float | None = None
    model_used: str | None = None
    provider_used: str | None = None


class LimitObject(Answer):
    """The limit that a request reached."""

    level: StatedBy
    id: str = Field(
        description="The id of the key, member or team, or the header of a request's ceiling."
    )
    kind: LimitKind
    limit: float = Field(
        description="US dollars for a limit of money, otherwise requests or tokens."
    )
    remaining: float = Field(description="The unused part of the limit, in the same unit.")
    resets_at: datetime | None = Field(description="null for a limit that never resets.")


class ProviderError(Answer):
    """A provider's own error, if the request has `x-tollgate-provider-errors: enabled`."""

    status: int | None
    body: Any = Field(description="Without secrets and parts of the prompt.")


class ErrorObject(Answer):
    """An error."""

    message: str
    type: str
    code: str
    param: str | None
    request_id: str
    limit: LimitObject | None = Field(default=None, description="The limit that was reached.")
    provider_error: ProviderError | None = None


class ErrorEnvelope(Answer):
    """The body of every error reply."""

    error: ErrorObject
    tollgate_metadata: TollgateMetadata | None = None
