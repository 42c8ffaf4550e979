"""Records of generations, their content and their routing trace, as shown by the API."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar, cast

from msgspec import Struct
from msgspec.structs import fields as struct_fields
from pydantic import BaseModel, ConfigDict, Field, JsonValue, create_model

from tollgate.core.limits import CostCeiling
from tollgate.core.money.amounts import usd
from tollgate.core.principal import GenerationSource, generation_source
from tollgate.core.prompt_policy import PromptPolicy
from tollgate.core.records.generation import (
    BillLine,
    GenerationRecord,
    Outcome,
    PromptTokens,
    RoundsBound,
    RoutingTrace,
    UsageSource,
)
from tollgate.core.request import PriceCeiling, RoutingPreferences
from tollgate.core.routing.endpoint_status import Speed
from tollgate.core.usage import Units, Usage
from tollgate.core.work.pictures import Picture
from tollgate.routing.price import MODEL_ITEMS
from tollgate.web.records.generation_parts import (
    AttemptObject,
    BillLineObject,
    JudgementObject,
    ReusedAnswerObject,
    RunObject,
    ShadowObject,
)
from tollgate.web.shapes import Unreadable, Usd, moment

_Model = TypeVar("_Model", bound=BaseModel)


class _Mirror(BaseModel):
    """A copy of a core struct, field by field."""

    model_config = ConfigDict(from_attributes=True)


def _with_fields_of(struct: type[Struct]) -> Callable[[type[_Model]], type[_Model]]:
    """Return a decorator that adds a required field to a model for each field of a struct.

    A field that the model declares keeps the declared type.
    """

    def decorate(model: type[_Model]) -> type[_Model]:
        declared = model.model_fields
        fields: dict[str, Any] = {
            each.name: (declared[each.name].annotation if each.name in declared else each.type, ...)
            for each in struct_fields(struct)
        }
        mirror = create_model(
            model.__name__,
            __base__=_Mirror,
            __module__=model.__module__,
            __doc__=model.__doc__,
            **fields,
        )
        return cast(type[_Model], mirror)

    return decorate


@_with_fields_of(Usage)
class TokensObject(_Mirror):
    """Tokens by price class, and counts of other units; null if the provider reported nothing."""


@_with_fields_of(PriceCeiling)
class PriceCeilingObject(_Mirror):
    """The highest prices that a caller accepts: USD per million tokens, and per request."""


@_with_fields_of(PromptPolicy)
class PromptPolicyObject(_Mirror):
    """A prompt policy that every endpoint of the plan meets."""


@_with_fields_of(RoutingPreferences)
class PreferencesObject(_Mirror):
    """The routing preferences of the request."""

    price_max: PriceCeilingObject | None
    prompt_policy: PromptPolicyObject | None


@_with_fields_of(PromptTokens)
class PromptObject(_Mirror):
    """The size of one of several prompts."""


@_with_fields_of(Units)
class UnitsObject(_Mirror):
    """The size of input work, in units other than text tokens."""


@_with_fields_of(Picture)
class PictureObject(_Mirror):
    """The size and quality of requested images; null leaves the choice to the provider."""


@_with_fields_of(RoundsBound)
class RoundsObject(_Mirror):
    """Upper bounds of the rounds of a generation with tools that the gateway runs."""


class DocumentsObject(_Mirror):
    """The documents that the gateway read for endpoints that cannot read them."""

    types: tuple[str, ...]
    tokens_min: int
    pages: int
    always: bool


@_with_fields_of(CostCeiling)
class CeilingObject(_Mirror):
    """The highest possible cost that the request or its key stated."""


@_with_fields_of(Speed)
class SpeedObject(_Mirror):
    """The measured speed of an endpoint at the time of the request."""


@_with_fields_of(RoutingTrace)
class TraceObject(_Mirror):
    """The facts that the planner knows about a request, without any of the request's text."""

    prompts: tuple[PromptObject, ...]
    units: UnitsObject | None
    units_max: UnitsObject | None
    picture: PictureObject | None
    documents: DocumentsObject | None
    preferences: PreferencesObject | None
    rounds: RoundsObject | None
    ceiling: CeilingObject | None
    prompt_policies: tuple[PromptPolicyObject, ...]
    speeds: Mapping[str, SpeedObject]


class GenerationObject(BaseModel):
    """The record of a generation."""

    id: str
    request_id: str
    upstream_id: str | None
    created_at: datetime
    model: str | None
    requested_model: str
    route: str | None
    rule: int | None = Field(description="number of the route's rule that applied, from 1")
    provider_name: str | None
    upstream_model: str | None
    key_id: str
    key_name: str
    labels: dict[str, str]
    ingress_format: str
    source: GenerationSource = Field(
        description="`playground` for requests of the console's playground"
    )
    streamed: bool
    cancelled: bool
    status: Outcome
    error_code: str | None
    finish_reason: str | None
    native_finish_reason: str | None
    withheld_tool_calls: int = Field(description="calls withheld by parallel_tool_calls: false")
    service_tier: str | None = Field(description="tier that served, by the provider's name")
    tokens_prompt: int
    tokens_completion: int
    tokens_reasoning: int | None
    tokens_cached_prompt: int | None
    tokens_cache_write: int
    native_tokens_prompt: int
    native_tokens_completion: int
    native_tokens_reasoning: int | None
    native_tokens_cached: int | None
    usage_source: UsageSource
    native_usage: object
    total_cost: Usd
    usage: Usd = Field(description="same as total_cost")
    held: Usd
    cost_micro_usd: str
    tool_costs_micro_usd: dict[str, str]
    cost_lines: list[BillLineObject]
    reused: ReusedAnswerObject | None = Field(
        description="the earlier answer that was sent; null for a new answer"
    )
    shadow: ShadowObject | None = Field(
        description="the original of a shadow generation, and the comparison; null for others"
    )
    server_tool_runs: list[RunObject]
    judgements: list[JudgementObject]
    rounds: list[TokensObject] = Field(
        description="tokens of each request to the model, if there are several"
    )
    latency_ms: int
    first_token_ms: int | None
    latency: int | None = Field(description="milliseconds to the first token")
    generation_time: int = Field(description="milliseconds in total")
    provider_responses: list[AttemptObject]
    catalog_sha: str
    client_request_id: str | None
    api_gateway_request_id: str | None = Field(
        description="API Gateway's id, as in its access log; null outside AWS"
    )
    lambda_request_id: str | None = Field(
        description="Lambda's id, as in the function's log; null outside AWS"
    )
    external_user: str | None
    adapted: list[str] = Field(description="parameters that had no effect, or a changed effect")
    forwarded: list[str] = Field(
        description="unknown fields that were passed unchanged to or from the provider"
    )
    limit_warning: str | None = Field(
        description="most used limit of the key and its used share, as in x-tollgate-limit-warning"
    )
    bill_only: bool = Field(
        description="whether the record has expired: fields that are not part of its bill are empty"
    )
    tokens: TokensObject = Field(description="tokens by price class")
    trace: TraceObject = Field(description="input of the planner, for `tollgate plan` to replay")

    @classmethod
    def of(cls, record: GenerationRecord) -> "GenerationObject":
        """Build the object from a stored record."""
        return cls(
            id=f"gen-{record.id}",
            request_id=record.id,
            upstream_id=record.upstream_id,
            created_at=moment(record.created_s),
            model=record.model,
            requested_model=record.trace.requested_model,
            route=record.trace.route,
            rule=record.trace.rule,
            provider_name=record.provider,
            upstream_model=record.upstream_model,
            key_id=record.key_id,
            key_name=record.key_label,
            labels=dict(record.all_labels),
            ingress_format=record.ingress_format,
            source=generation_source(record.caller_labels),
            streamed=record.streamed,
            cancelled=record.outcome == "cancelled",
            status=record.outcome,
            error_code=record.error,
            finish_reason=record.finish,
            native_finish_reason=record.raw_finish,
            withheld_tool_calls=record.withheld_calls,
            service_tier=record.service_tier,
            tokens_prompt=record.usage.input_tokens,
            tokens_completion=record.usage.output_tokens or 0,
            tokens_reasoning=record.usage.reasoning_tokens,
            tokens_cached_prompt=record.usage.cache_read_input_tokens,
            tokens_cache_write=record.usage.cache_write_input_tokens,
            native_tokens_prompt=record.usage.input_tokens,
            native_tokens_completion=record.usage.output_tokens or 0,
            native_tokens_reasoning=record.usage.reasoning_tokens,
            native_tokens_cached=record.usage.cache_read_input_tokens,
            usage_source=record.usage_source,
            native_usage=record.raw_usage,
            total_cost=usd(record.cost_nano_usd),
            usage=usd(record.cost_nano_usd),
            held=usd(record.held_nano_usd),
            cost_micro_usd=_micro_usd(record.cost_nano_usd),
            tool_costs_micro_usd=_tool_costs(record.lines),
            cost_lines=[BillLineObject.of(line) for line in record.lines],
            judgements=[JudgementObject.of(each) for each in record.judgements],
            reused=ReusedAnswerObject.of(record.reused) if record.reused else None,
            shadow=ShadowObject.of(record.shadow) if record.shadow else None,
            server_tool_runs=[RunObject.of(run) for run in record.runs],
            rounds=[TokensObject.model_validate(usage) for usage in record.rounds],
            latency_ms=record.duration_ms,
            first_token_ms=record.first_token_ms,
            latency=record.first_token_ms,
            generation_time=record.duration_ms,
            provider_responses=[AttemptObject.of(attempt) for attempt in record.attempts],
            catalog_sha=record.catalog_sha,
            client_request_id=record.client_request_id,
            api_gateway_request_id=record.api_gateway_request_id,
            lambda_request_id=record.lambda_request_id,
            external_user=record.user,
            adapted=list(record.adapted),
            forwarded=list(record.forwarded),
            limit_warning=record.limit_warning,
            bill_only=record.is_bill,
            tokens=TokensObject.model_validate(record.usage),
            trace=TraceObject.model_validate(record.trace),
        )


class ContentObject(BaseModel):
    """The request of a generation as the caller sent it, and the answer of each choice."""

    id: str
    request: dict[str, JsonValue]
    choices: list[list[dict[str, JsonValue]]] = Field(description="the parts of each choice")


class ContentReply(BaseModel):
    """The content of one generation."""

    data: ContentObject


class GenerationsReply(BaseModel):
    """Generations, newest first; `next_cursor` requests the next page and is null on the last.

    A page may be shorter than `limit`, or empty, even if there is a next page, because a page reads
    a bounded number of stored items.
    """

    data: list[GenerationObject]
    next_cursor: str | None
    unreadable: Unreadable


def _tool_costs(lines: Sequence[BillLine]) -> dict[str, str]:
    """Return the costs by item, without items of the model; each run of a tool has its own line."""
    costs: dict[str, int] = {}
    for line in lines:
        if line.item not in MODEL_ITEMS:
            costs[line.item] = costs.get(line.item, 0) + line.cost_nano_usd
    return {item: _micro_usd(cost) for item, cost in costs.items()}


def _micro_usd(amount_nano_usd: int) -> str:
    return f"{Decimal(amount_nano_usd).scaleb(-3):f}"
