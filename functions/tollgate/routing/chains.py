"""Routes in routing.yaml: rules, weighted steps, promises, retries and guardrails."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import (
    BeforeValidator,
    Field,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from tollgate.core.addresses import DomainRules
from tollgate.core.request import Capability, Modality, ProviderSort
from tollgate.core.service_tiers import PricedTier
from tollgate.routing.scalars import (
    MODEL_SLUG,
    Dollars,
    Domains,
    Id,
    ModelSlug,
    Percent,
    Seconds,
    Sentence,
    Slug,
    Stated,
    Strict,
    Tokens,
)

_CERTAIN: Final = 100

# Server tools whose domains a route may restrict.
ToolOfWeb = Literal["web_search", "web_fetch"]

NextOn = Literal[
    "provider_rate_limit",
    "provider_overloaded",
    "provider_unavailable",
    "provider_timeout",
    "provider_auth",
    "context_length_exceeded",
    "content_filter",
]
NEXT_ON_DEFAULT: Final[tuple[NextOn, ...]] = get_args(NextOn)
# Other errors are not retried, because the endpoint would only fail in the same way again.
RetriedError = Literal["provider_rate_limit", "provider_overloaded", "provider_unavailable"]
Retries = Annotated[int, Field(ge=0, le=2)]


class RetrySection(Strict):
    """Retries of an endpoint before the next endpoint is tried."""

    retries_max: Retries = 2
    """Maximum number of retries per endpoint."""
    retries_max_by_error: Mapping[RetriedError, Retries] = Field(default={})
    """Maximum number of retries by error code, used instead of `retries_max`."""
    backoff_min_s: Seconds = 0.25
    """Maximum pause before the first retry; doubled for each later retry."""
    backoff_max_s: Seconds = 4.0
    """Maximum pause before any retry. If a provider asks for a longer pause, the endpoint is not
    retried.
    """

    def retries_max_on(self, code: str) -> int:
        """Return the maximum number of retries per endpoint after this error."""
        by_error = self.retries_max_by_error.items()
        return next((most for name, most in by_error if name == code), self.retries_max)


class GuardrailSection(Strict):
    """Guardrail in Amazon Bedrock, identified by id and version."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9:/_-]+$", max_length=2048)]
    """Id or ARN."""
    version: Annotated[str, StringConstraints(pattern=r"^([1-9][0-9]{0,7}|DRAFT)$")]
    """Version: a number in quotes, or DRAFT."""


def _weighted(value: object) -> object:
    return {value: _CERTAIN} if isinstance(value, str) else value


# One model, or several with weights: one is drawn and tried first, and then the others.
Step = Annotated[
    Mapping[ModelSlug, Percent],
    Field(min_length=1, max_length=16),
    BeforeValidator(_weighted),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": MODEL_SLUG},
                {
                    "type": "object",
                    "minProperties": 1,
                    "propertyNames": {"pattern": MODEL_SLUG},
                    "additionalProperties": {"type": "integer", "minimum": 0, "maximum": 100},
                },
            ]
        }
    ),
]
# The percentage of a budget below which a rule's condition holds.
BudgetShare = Annotated[str, StringConstraints(pattern=r"^<([1-9][0-9]?|100)%$")]
Steps = Annotated[tuple[Step, ...], Field(min_length=1, max_length=16)]


class ConditionSection(Strict, json_schema_extra={"minProperties": 1}):
    """Conditions of a rule, all of which must hold."""

    key_tier: Slug | None = None
    """Tier that the key must have."""
    metadata: Mapping[str, str] = Field(default={})
    """Metadata that the request must have, keyed by name."""
    input_has: Modality | None = None
    """Modality that the request's input must contain."""
    prompt_tokens_over: Tokens | None = None
    """The condition holds if the prompt has more tokens than this, as estimated from the request's
    size.
    """
    capability: Capability | None = None
    """Capability that the request must need."""
    compaction: Literal[True] | None = None
    """The condition holds for a request that compacts a conversation. A model of the rule then
    writes the record, even where a provider could compact.
    """
    budget_left: BudgetShare | None = None
    """The condition holds if less than this share, such as `<20%`, is left of any USD limit of the
    key, its tier, member or team. The limits are as they were at the last request with the key in
    the same process.
    """

    @property
    def budget_left_under(self) -> int | None:
        """The percentage of the budget below which the condition holds; None without the
        condition.
        """
        return None if self.budget_left is None else int(self.budget_left[1:-1])

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self == _NO_CONDITION:
            raise ValueError("must name a condition or be left out")
        return self


_NO_CONDITION: Final = ConditionSection.model_construct()


class RuleSection(Strict):
    """A chain of models, and the conditions under which it is tried."""

    condition: ConditionSection | None = Field(default=None, alias="if")
    """Conditions; a rule without conditions always applies."""
    steps: Steps = Field(alias="try")
    """Models in order. A map of weights is a single step, whose first model is drawn by weight."""


class PromiseSection(Strict):
    """Properties that every model of a route must have, enforced by `tollgate check`."""

    supports: tuple[Capability, ...] = ()
    context_min: Tokens | None = None
    input_price_max: Dollars | None = None
    """Maximum price in dollars per million input tokens, at any endpoint."""
    output_price_max: Dollars | None = None
    """Maximum price in dollars per million output tokens, at any endpoint."""


class RouteDomainsSection(Strict):
    """Domains for a server tool on a route; each list replaces the tool's own."""

    allowed_domains: Domains | None = None
    """Domains that may be searched or fetched; empty allows all domains."""
    blocked_domains: Domains | None = None
    """Domains that must not be searched or fetched."""

    def merge(self, rules: DomainRules) -> DomainRules:
        """Return the rules with each list that this section has in place of the earlier list."""
        allowed, blocked = self.allowed_domains, self.blocked_domains
        return DomainRules(
            allowed=rules.allowed if allowed is None else allowed,
            blocked=rules.blocked if blocked is None else blocked,
        )


class CacheSection(Strict):
    """Reuse of answers to identical requests, for keys that opt in with `answer_cache`."""

    ttl_s: Annotated[int, Field(ge=1, le=86_400)]
    """Seconds for which an answer may be reused."""
    price_percent: Percent = 0
    """Price of a reused answer, in percent of the answer's own cost."""


class ShadowSection(Strict):
    """Model that also gets some of a route's requests, for comparison, at the operator's cost.

    Callers neither get its answers nor wait for them. Only keys with `content_days` take part.
    """

    model: ModelSlug
    """Chat model whose answers are compared."""
    share: Annotated[int, Field(ge=1, le=100)]
    """Requests that the model gets, in percent, drawn by session or request."""
    workspace: Id
    """Id of the workspace that pays and has the records."""
    key_id: Id
    """Id of the key in this workspace under which the model is called, within the key's limits."""
    judge: ModelSlug | None = None
    """Slug of a chat model that compares both answers, at the cost of the same key."""


class RouteSection(
    Strict, json_schema_extra={"oneOf": [{"required": ["try"]}, {"required": ["rules"]}]}
):
    """A chain of models, or rules with chains; the first rule that applies is used."""

    description: Sentence
    steps: Steps | None = Field(default=None, alias="try")
    """Models in order. A map of weights is a single step, whose first model is drawn by weight."""
    rules: Annotated[tuple[RuleSection, ...], Field(min_length=1, max_length=64)] | None = None
    service_tier: PricedTier | None = None
    """Service tier for requests that state none. An endpoint that is too busy for the tier is tried
    again at the default tier."""
    sort: ProviderSort | None = None
    """Order of each model's endpoints for requests without a `provider.sort`."""
    next_on: tuple[NextOn, ...] = NEXT_ON_DEFAULT
    """Errors after which the next endpoint or model is tried."""
    retry: Annotated[RetrySection, Stated] | None = None
    """Keys that override those in `defaults.retry`."""
    promise: PromiseSection | None = None
    guardrail: GuardrailSection | None = None
    """Guardrail for the route's endpoints that do not have their own."""
    server_tools: Mapping[ToolOfWeb, RouteDomainsSection] = Field(default={})
    """Domains for server tools on this route, by tool."""
    cache: CacheSection | None = None
    shadow: ShadowSection | None = None

    @model_validator(mode="after")
    def _either_steps_or_rules(self) -> Self:
        if (self.steps is None) == (self.rules is None):
            raise ValueError("must have either try or rules")
        return self

    @model_validator(mode="after")
    def _guards_its_shadow(self) -> Self:
        # A guardrail of Bedrock judges only the prompts that Bedrock serves.
        if self.guardrail is not None and self.shadow is not None:
            raise ValueError("must not have both guardrail and shadow")
        return self

    @property
    def all_rules(self) -> tuple[RuleSection, ...]:
        """The rules; a plain `try` counts as one rule without conditions."""
        if self.rules is not None:
            return self.rules
        return (RuleSection.model_construct(condition=None, steps=self.steps),)
