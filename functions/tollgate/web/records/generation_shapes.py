"""Records of generations, their content and their routing trace, as shown by the API."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Literal

from pydantic import BaseModel, Field, JsonValue

from tollgate.core.money.amounts import usd
from tollgate.core.records.generation import (
    AttemptRecord,
    BillLine,
    GenerationRecord,
    JudgementRecord,
    JudgementVerdict,
    Outcome,
    ReusedAnswer,
    RunRecord,
    UsageSource,
)
from tollgate.routing.price import MODEL_ITEMS
from tollgate.web.records.trace_shapes import TokensObject, TraceObject
from tollgate.web.shapes import Unreadable, Usd, moment


class BillLineObject(BaseModel):
    """One line of a bill."""

    item: str
    quantity: int
    usd_per_million: Usd
    cost: Usd
    round: int | None = Field(
        description="number of the request to the model, if there are several"
    )

    @classmethod
    def of(cls, line: BillLine) -> "BillLineObject":
        """Build the object from a stored line."""
        return cls(
            item=line.item,
            quantity=line.quantity,
            usd_per_million=line.usd_per_million,
            cost=usd(line.cost_nano_usd),
            round=line.round,
        )


class RunObject(BaseModel):
    """One run of a tool within the request, without the query and the result."""

    tool: str
    engine: str = Field(description="empty if no engine was reached")
    round: int = Field(description="number of the request to the model, from 1")
    query_hash: str = Field(description="start of the SHA-256 of the arguments")
    began: int = Field(description="milliseconds after the start of the first request")
    latency: int = Field(description="milliseconds")
    error: str | None = Field(description="error code that the model got")
    cost: Usd

    @classmethod
    def of(cls, run: RunRecord) -> "RunObject":
        """Build the object from a stored run."""
        return cls(
            tool=run.tool,
            engine=run.engine,
            round=run.round,
            query_hash=run.query_hash,
            began=run.began_ms,
            latency=run.duration_ms,
            error=run.error,
            cost=usd(run.cost_nano_usd),
        )


class JudgementObject(BaseModel):
    """The judgements of one guardrail of the gateway on one stage, without any text."""

    guardrail: str
    stage: str = Field(description="input, output, tool_arguments or tool_results")
    verdict: JudgementVerdict = Field(description="strictest verdict; failed if there was none")
    findings: list[str]
    pieces: int = Field(description="texts, or pieces of texts, that were judged")
    latency: int = Field(description="milliseconds that a model needed")
    cost: Usd

    @classmethod
    def of(cls, judgement: JudgementRecord) -> "JudgementObject":
        """Build the object from stored judgements."""
        return cls(
            guardrail=judgement.guardrail,
            stage=judgement.stage,
            verdict=judgement.verdict,
            findings=list(judgement.findings),
            pieces=judgement.pieces,
            latency=judgement.duration_ms,
            cost=usd(judgement.cost_nano_usd),
        )


class ReusedAnswerObject(BaseModel):
    """The answer of an earlier generation, which was sent instead of calling a provider."""

    generation_id: str
    saved: Usd = Field(description="cost of the earlier answer, minus the price of its reuse")

    @classmethod
    def of(cls, reused: ReusedAnswer) -> "ReusedAnswerObject":
        """Build the object from the record's part."""
        return cls(generation_id=f"gen-{reused.generation_id}", saved=usd(reused.saved_nano_usd))


class AttemptObject(BaseModel):
    """One attempt at one endpoint; `error` is null for the attempt that served."""

    model: str
    provider_name: str
    error: str | None
    status: int | None
    provider_words: str = Field(description="the provider's error text, without secrets and prompt")
    latency: int = Field(description="milliseconds")
    operator_cost: Usd = Field(description="cost of a failed attempt, which the operator pays")

    @classmethod
    def of(cls, attempt: AttemptRecord) -> "AttemptObject":
        """Build the object from a stored attempt."""
        return cls(
            model=attempt.model,
            provider_name=attempt.provider,
            error=attempt.error,
            status=attempt.status,
            provider_words=attempt.provider_words,
            latency=attempt.duration_ms,
            operator_cost=usd(attempt.operator_cost_nano_usd),
        )


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
    source: Literal["api"] = "api"
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
