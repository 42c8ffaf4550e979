"""The routes of routing.yaml: rules, weighted steps, promises, retries and guardrails."""

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
from tollgate.core.request import Capability, Modality
from tollgate.routing.scalars import (
    MODEL_SLUG,
    Dollars,
    Domains,
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

# Tools whose domains a route can limit.
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
# Other errors are not retried, since the same endpoint would fail in the same way again.
RetriedError = Literal["provider_rate_limit", "provider_overloaded", "provider_unavailable"]
Retries = Annotated[int, Field(ge=0, le=2)]


class RetrySection(Strict):
    """Retries of one endpoint before the next endpoint is tried."""

    retries_max: Retries = Field(default=2, description="Retries of one endpoint.")
    retries_max_by_error: Mapping[RetriedError, Retries] = Field(
        default={}, description="Retries by error code, instead of `retries_max`."
    )
    backoff_min_s: Seconds = Field(
        default=0.25,
        description="Longest pause before the first retry; doubled for each further retry.",
    )
    backoff_max_s: Seconds = Field(
        default=4.0,
        description="Longest pause before any retry; if a provider asks for more, no retry is "
        "made.",
    )

    def retries_max_on(self, code: str) -> int:
        """Return how often one endpoint is retried after this error."""
        by_error = self.retries_max_by_error.items()
        return next((most for name, most in by_error if name == code), self.retries_max)


class GuardrailSection(Strict):
    """Guardrail of Amazon Bedrock, by id and version."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9:/_-]+$", max_length=2048)] = Field(
        description="Id or ARN."
    )
    version: Annotated[str, StringConstraints(pattern=r"^([1-9][0-9]{0,7}|DRAFT)$")] = Field(
        description="Version: a number in quotes, or DRAFT."
    )


def _weighted(value: object) -> object:
    return {value: _CERTAIN} if isinstance(value, str) else value


# One model, or models by weight: one is drawn first, the rest of the step follows.
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
Steps = Annotated[tuple[Step, ...], Field(min_length=1, max_length=16)]


class ConditionSection(Strict, json_schema_extra={"minProperties": 1}):
    """The conditions of a rule, all of which must hold."""

    key_tier: Slug | None = Field(default=None, description="Tier of the key.")
    metadata: Mapping[str, str] = Field(
        default={}, description="Metadata that the request must have, by name."
    )
    input_has: Modality | None = Field(
        default=None, description="Modality that some part of the request must have."
    )
    prompt_tokens_over: Tokens | None = Field(
        default=None,
        description="Prompt tokens that must be exceeded, as estimated from the request's bytes.",
    )
    capability: Capability | None = Field(
        default=None, description="Capability that the request must need."
    )

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self == _NO_CONDITION:
            raise ValueError("must name a condition or be left out")
        return self


_NO_CONDITION: Final = ConditionSection.model_construct()


class RuleSection(Strict):
    """A chain of models, with the conditions under which it is tried."""

    condition: ConditionSection | None = Field(
        default=None, alias="if", description="Conditions; without them the rule always applies."
    )
    steps: Steps = Field(alias="try", description="Models in order; of a map one is drawn.")


class PromiseSection(Strict):
    """Properties of every model that a route may lead to, which `tollgate check` enforces."""

    supports: tuple[Capability, ...] = ()
    context_min: Tokens | None = None
    input_price_max: Dollars | None = Field(
        default=None, description="Most dollars per million input tokens at any endpoint."
    )
    output_price_max: Dollars | None = Field(
        default=None, description="Most dollars per million output tokens at any endpoint."
    )


class RouteDomainsSection(Strict):
    """Domains of a tool on a route; each list replaces the list of the tool."""

    allowed_domains: Domains | None = Field(
        default=None, description="The only domains that are searched or fetched; empty for any."
    )
    blocked_domains: Domains | None = Field(
        default=None, description="Domains that are neither searched nor fetched."
    )

    def merge(self, rules: DomainRules) -> DomainRules:
        """Return the domain rules with the lists that this section states."""
        allowed, blocked = self.allowed_domains, self.blocked_domains
        return DomainRules(
            allowed=rules.allowed if allowed is None else allowed,
            blocked=rules.blocked if blocked is None else blocked,
        )


class RouteSection(
    Strict, json_schema_extra={"oneOf": [{"required": ["try"]}, {"required": ["rules"]}]}
):
    """Chain of models, or rules with a chain each; the first rule that applies is used."""

    description: Sentence
    steps: Steps | None = Field(
        default=None, alias="try", description="Models in order; of a map one is drawn."
    )
    rules: Annotated[tuple[RuleSection, ...], Field(min_length=1, max_length=64)] | None = None
    next_on: tuple[NextOn, ...] = Field(
        default=NEXT_ON_DEFAULT,
        description="Errors after which the next endpoint or model is tried.",
    )
    retry: Annotated[RetrySection, Stated] | None = Field(
        default=None, description="Overrides of single keys of `defaults.retry`."
    )
    promise: PromiseSection | None = None
    guardrail: GuardrailSection | None = Field(
        default=None,
        description="Guardrail for every endpoint of the route that does not state one.",
    )
    server_tools: Mapping[ToolOfWeb, RouteDomainsSection] = Field(
        default={}, description="Domains of server tools on this route, by tool."
    )

    @model_validator(mode="after")
    def _either_steps_or_rules(self) -> Self:
        if (self.steps is None) == (self.rules is None):
            raise ValueError("must have either try or rules")
        return self

    @property
    def all_rules(self) -> tuple[RuleSection, ...]:
        """The rules; a plain `try` is one rule without conditions."""
        if self.rules is not None:
            return self.rules
        return (RuleSection.model_construct(condition=None, steps=self.steps),)
