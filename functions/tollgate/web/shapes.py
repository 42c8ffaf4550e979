"""The bodies of the api routes; OpenRouter's names where it has them."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, PlainSerializer

from tollgate.core.generation import GenerationRecord
from tollgate.core.money import usd

# A JSON number: the shortest one that reads back as the same amount, to the nano-dollar, for
# amounts under a million dollars. Sums are never made of it.
Usd = Annotated[Decimal, PlainSerializer(float, return_type=float, when_used="json")]
# With a time zone, and such that it has a year in every other one.
Moment = Annotated[
    AwareDatetime,
    Field(ge=datetime(2000, 1, 1, tzinfo=UTC), le=datetime(9999, 1, 1, tzinfo=UTC)),
]
PositiveUsd = Annotated[Decimal, Field(gt=0, le=1_000_000, decimal_places=9)]


class Body(BaseModel):
    """A request body in which every field is known."""

    model_config = ConfigDict(extra="forbid")


class BillLineObject(BaseModel):
    """One line of a bill."""

    item: str
    quantity: int
    usd_per_million: Usd
    cost: Usd


class AttemptObject(BaseModel):
    """One try at one endpoint; `error` is null for the one that served."""

    model: str
    provider_name: str
    error: str | None
    status: int | None
    latency: int = Field(description="milliseconds")


class GenerationObject(BaseModel):
    """The record of a generation."""

    id: str
    request_id: str
    upstream_id: str | None
    created_at: datetime
    model: str | None
    requested_model: str
    route: str | None
    provider_name: str | None
    ingress_format: str
    source: Literal["api"] = "api"
    streamed: bool
    cancelled: bool
    status: Literal["ok", "error", "cancelled", "lost"]
    error_code: str | None
    finish_reason: str | None
    native_finish_reason: str | None
    tokens_prompt: int
    tokens_completion: int
    tokens_reasoning: int | None
    tokens_cached_prompt: int | None
    usage_source: Literal["provider", "estimated", "none"]
    native_usage: JsonValue
    total_cost: Usd
    cost_micro_usd: str
    tool_costs_micro_usd: dict[str, str]
    cost_lines: list[BillLineObject]
    latency_ms: int
    first_token_ms: int | None
    provider_responses: list[AttemptObject]
    catalog_sha: str
    client_request_id: str | None
    external_user: str | None

    @classmethod
    def of(cls, record: GenerationRecord) -> "GenerationObject":
        """The record as it is shown."""
        return cls(
            id=f"gen-{record.id}",
            request_id=record.id,
            upstream_id=record.upstream_id,
            created_at=moment(record.created_s),
            model=record.model,
            requested_model=record.trace.requested_model,
            route=record.trace.route,
            provider_name=record.provider,
            ingress_format=record.ingress_format,
            streamed=record.streamed,
            cancelled=record.outcome == "cancelled",
            status=record.outcome,
            error_code=record.error,
            finish_reason=record.finish,
            native_finish_reason=record.raw_finish,
            tokens_prompt=record.usage.input_tokens,
            tokens_completion=record.usage.output_tokens or 0,
            tokens_reasoning=record.usage.reasoning_tokens,
            tokens_cached_prompt=record.usage.cache_read_input_tokens,
            usage_source=record.usage_source,
            native_usage=record.raw_usage,
            total_cost=usd(record.cost_nano_usd),
            cost_micro_usd=f"{Decimal(record.cost_nano_usd).scaleb(-3):f}",
            tool_costs_micro_usd={},
            cost_lines=[
                BillLineObject(
                    item=line.item,
                    quantity=line.quantity,
                    usd_per_million=line.usd_per_million,
                    cost=usd(line.cost_nano_usd),
                )
                for line in record.lines
            ],
            latency_ms=record.duration_ms,
            first_token_ms=record.first_token_ms,
            provider_responses=[
                AttemptObject(
                    model=attempt.model,
                    provider_name=attempt.provider,
                    error=attempt.error,
                    status=attempt.status,
                    latency=attempt.duration_ms,
                )
                for attempt in record.attempts
            ],
            catalog_sha=record.catalog_sha,
            client_request_id=record.client_request_id,
            external_user=record.user,
        )


class GenerationReply(BaseModel):
    """One generation."""

    data: GenerationObject


def moment(unix_s: int) -> datetime:
    """A Unix second as JSON shows it."""
    return datetime.fromtimestamp(unix_s, tz=UTC)
