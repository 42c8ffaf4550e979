"""Parts of a generation's record, as shown by the API: bill lines, runs, judgements, attempts."""

from pydantic import BaseModel, Field

from tollgate.core.money.amounts import usd
from tollgate.core.records.generation import (
    AttemptRecord,
    BillLine,
    JudgementRecord,
    JudgementVerdict,
    ReusedAnswer,
    RunRecord,
    ShadowTrace,
)
from tollgate.web.shapes import Usd


class BillLineObject(BaseModel):
    """One line of a bill."""

    item: str
    quantity: int
    usd_per_million: Usd
    cost: Usd
    round: int | None = Field(
        description="number of the request to the model, if there are several"
    )
    service_tier: str | None = Field(description="tier whose rate applies; null for the default")

    @classmethod
    def of(cls, line: BillLine) -> "BillLineObject":
        """Build the object from a stored line."""
        return cls(
            item=line.item,
            quantity=line.quantity,
            usd_per_million=line.usd_per_million,
            cost=usd(line.cost_nano_usd),
            round=line.round,
            service_tier=line.service_tier,
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


class ShadowedByObject(BaseModel):
    """The generation in which the route's shadow answered the same request."""

    generation_id: str
    is_readable: bool = Field(description="whether the caller may read it, in this workspace")


class ShadowObject(BaseModel):
    """The original of a shadow generation or of its judge, and the comparison of both answers."""

    generation_id: str
    route: str
    model: str | None = Field(description="model that served the original")
    cost: Usd = Field(description="cost of the original, like the next four fields")
    latency_ms: int
    first_token_ms: int | None
    tokens_completion: int
    refused: bool
    shadow_refused: bool
    tool_calls: str | None = Field(
        description="whether both called the same tools with equal arguments; null if neither did"
    )
    judges: bool = Field(description="whether this is the generation of the judge")
    preferred: str | None = Field(description="the judge's verdict: original, shadow or neither")

    @classmethod
    def of(cls, shadow: ShadowTrace) -> "ShadowObject":
        """Build the object from the record's part."""
        return cls(
            generation_id=f"gen-{shadow.generation_id}",
            route=shadow.route,
            model=shadow.model,
            cost=usd(shadow.cost_nano_usd),
            latency_ms=shadow.duration_ms,
            first_token_ms=shadow.first_token_ms,
            tokens_completion=shadow.output_tokens,
            refused=shadow.refused,
            shadow_refused=shadow.shadow_refused,
            tool_calls=shadow.tool_calls,
            judges=shadow.judges,
            preferred=shadow.preferred,
        )


class AttemptObject(BaseModel):
    """One attempt at one endpoint; `error` is null for the attempt that served."""

    model: str
    provider_name: str
    error: str | None
    status: int | None
    provider_words: str = Field(description="the provider's error text, without secrets and prompt")
    latency: int = Field(description="milliseconds")
    operator_cost: Usd = Field(description="cost of a failed attempt, which the operator pays")
    service_tier: str | None = Field(description="requested tier; null for the default")

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
            service_tier=attempt.service_tier,
        )
