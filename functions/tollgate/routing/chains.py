"""What routing.yaml says of routes: rules, weighted steps, promises, on which errors to go on."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema, model_validator

from tollgate.core.request import Capability, Modality
from tollgate.routing.scalars import (
    MODEL_SLUG,
    Dollars,
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

NextOn = Literal[
    "provider_rate_limit",
    "provider_overloaded",
    "provider_unavailable",
    "provider_timeout",
    "provider_auth",
    "context_length_exceeded",
    "content_filter",
]
NEXT_ON_DEFAULT: Final[tuple[NextOn, ...]] = (
    "provider_rate_limit",
    "provider_overloaded",
    "provider_unavailable",
    "provider_timeout",
    "provider_auth",
    "context_length_exceeded",
    "content_filter",
)
# The others are not retried: the same endpoint would answer the same.
RetriedError = Literal["provider_rate_limit", "provider_overloaded", "provider_unavailable"]
Retries = Annotated[int, Field(ge=0, le=2)]


class RetrySection(Strict):
    """How often one endpoint is tried again before the next one is.

    `retries_max_by_error` says it apart for an error.
    """

    retries_max: Retries = 2
    retries_max_by_error: Mapping[RetriedError, Retries] = {}
    backoff_min_s: Seconds = 0.25
    backoff_max_s: Seconds = 4.0


class GuardrailSection(Strict):
    """A guardrail of Amazon Bedrock; a version is a number or DRAFT."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9:/_-]+$", max_length=2048)]
    version: Annotated[str, StringConstraints(pattern=r"^([1-9][0-9]{0,7}|DRAFT)$")]


def _weighted(value: object) -> object:
    return {value: _CERTAIN} if isinstance(value, str) else value


# A model, or several of which one is drawn and the others come next.
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
    """When a rule applies: all that is said must hold.

    `prompt_tokens_over` is compared with an estimate, by the size of the request.
    """

    key_tier: Slug | None = None
    metadata: Mapping[str, str] = {}
    input_has: Modality | None = None
    prompt_tokens_over: Tokens | None = None
    capability: Capability | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self == _NO_CONDITION:
            raise ValueError("must name a condition, or be left out")
        return self


_NO_CONDITION: Final = ConditionSection.model_construct()


class RuleSection(Strict):
    """What to try, and when; without `if` always."""

    condition: ConditionSection | None = Field(default=None, alias="if")
    steps: Steps = Field(alias="try")


class PromiseSection(Strict):
    """What every model that a route may lead to must offer; the check holds the file to it."""

    supports: tuple[Capability, ...] = ()
    context_min: Tokens | None = None
    input_price_max: Dollars | None = None
    output_price_max: Dollars | None = None


class RouteSection(
    Strict, json_schema_extra={"oneOf": [{"required": ["try"]}, {"required": ["rules"]}]}
):
    """A chain of models, or rules that choose one: the first that applies counts.

    The next attempt is made on the errors of `next_on`.
    """

    description: Sentence
    steps: Steps | None = Field(default=None, alias="try")
    rules: Annotated[tuple[RuleSection, ...], Field(min_length=1, max_length=64)] | None = None
    next_on: tuple[NextOn, ...] = NEXT_ON_DEFAULT
    retry: Annotated[RetrySection, Stated] | None = None
    promise: PromiseSection | None = None
    guardrail: GuardrailSection | None = None

    @model_validator(mode="after")
    def _either_steps_or_rules(self) -> Self:
        if (self.steps is None) == (self.rules is None):
            raise ValueError("must have either try or rules")
        return self

    @property
    def all_rules(self) -> tuple[RuleSection, ...]:
        """The rules, of which a plain `try` is one."""
        if self.rules is not None:
            return self.rules
        return (RuleSection.model_construct(condition=None, steps=self.steps),)
