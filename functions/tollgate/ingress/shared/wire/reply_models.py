"""Models of the parts that replies of all OpenAI formats have, and of the envelope of errors.

https://platform.openai.com/docs/api-reference/chat/object (2026-08-21)
"""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from tollgate.core.limits import Level, LimitKind


class Answer(BaseModel):
    """The base of reply models; unknown fields are forbidden, so every sent field is documented."""

    model_config = ConfigDict(extra="forbid")


class PromptTokensDetails(Answer):
    """Parts of the prompt; 0 also if the provider does not report a part."""

    cached_tokens: int
    cache_write_tokens: int
    audio_tokens: int


class CompletionTokensDetails(Answer):
    """Parts of the output; 0 also if the provider does not report a part."""

    reasoning_tokens: int
    audio_tokens: int


class Usage(Answer):
    """Usage and cost."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails
    completion_tokens_details: CompletionTokensDetails
    cost: float = Field(description="US dollars, exact to a billionth.")


class RoutedAttempt(Answer):
    """One attempt at one endpoint; `error` is null for the attempt that served."""

    provider: str
    model: str
    status: int | None
    error: str | None
    ms: int


class TollgateMetadata(Answer):
    """The routing of the request, for callers who send `x-tollgate-metadata: enabled`."""

    requested: str
    route: str | None
    rule: int | None = Field(description="The rule of the route that matched, counted from 1.")
    attempts: list[RoutedAttempt]
    catalog_sha: str


class RoutingFacts(Answer):
    """The routing of an answer; a fact that does not apply is left out."""

    fallback_from: str | None = Field(
        default=None, description="The model that was tried first and did not serve."
    )
    fallback_depth: int | None = None
    adapted: list[str] | None = Field(default=None, description="Parameters that had no effect.")
    tollgate_metadata: TollgateMetadata | None = None


class Accounts(RoutingFacts):
    """The model, provider and price of an answer, which whole replies also have in headers."""

    credits_used: float
    model_used: str | None
    provider_used: str | None


class PartialAccounts(RoutingFacts):
    """The accounts of a streamed answer, which only the last frame has."""

    credits_used: float | None = None
    model_used: str | None = None
    provider_used: str | None = None


class LimitObject(Answer):
    """The limit that a request has reached."""

    level: Level
    id: str = Field(description="Id of the key, the member or the team.")
    kind: LimitKind
    limit: float = Field(description="US dollars for a period's limit, else requests or tokens.")
    remaining: float = Field(description="The rest of the limit, in the same unit.")
    resets_at: datetime | None = Field(description="null for a limit that never resets.")


class ErrorObject(Answer):
    """One error."""

    message: str
    type: str
    code: str
    param: str | None
    request_id: str
    limit: LimitObject | None = Field(
        default=None, description="The limit of a key, a member or a team that was reached."
    )


class ErrorEnvelope(Answer):
    """The body of every error."""

    error: ErrorObject
    tollgate_metadata: TollgateMetadata | None = None
