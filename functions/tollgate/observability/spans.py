"""Generations and tool runs as spans: the only table of attribute names.

Names: the OpenTelemetry GenAI conventions 0.1.0
(github.com/open-telemetry/semantic-conventions-genai, 2026-11-28), all in development; their schema
is sent with each request, so that a collector can translate names that change. Tollgate's own names
begin with `tollgate.`. The conventions have no name for a cost; `gen_ai.usage.cost` is the name of
other exporters (github.com/danielkov/agentkit 0.9.2, 2026-11-28).
"""

from collections.abc import Mapping
from typing import Final

from tollgate.core.money.amounts import NANO_USD_PER_USD, usd_text
from tollgate.core.records.generation import GenerationRecord, RunRecord
from tollgate.core.tracing import Span
from tollgate.core.work.kinds import WorkKind
from tollgate.observability.protobuf import SpanAttributes, SpanMessage

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/gen-ai/0.1.0"
NS_PER_MS: Final = 1_000_000
_KIND_INTERNAL: Final = 1
_KIND_CLIENT: Final = 3
# The operations that the conventions name; other kinds of work keep their own names.
_OPERATIONS: Final[Mapping[WorkKind, str]] = {"embedding": "embeddings"}
_FORMAT_OPERATIONS: Final = {"completions": "text_completion"}
_TOOL_OPERATION: Final = "execute_tool"


def span_of(
    record: GenerationRecord, span: Span, end_ns: int, content: SpanAttributes
) -> SpanMessage:
    """Return the span of a generation that ended at `end_ns`; `content` has further attributes."""
    operation = _FORMAT_OPERATIONS.get(
        record.ingress_format, _OPERATIONS.get(record.trace.kind, record.trace.kind)
    )
    return SpanMessage(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_span_id,
        name=f"{operation} {record.trace.requested_model}",
        kind=_KIND_CLIENT,
        start_ns=end_ns - record.duration_ms * NS_PER_MS,
        end_ns=end_ns,
        attributes={**_describe_generation(record, operation), **content},
        error=record.error,
    )


def span_of_run(run: RunRecord, span: Span, generation_start_ns: int) -> SpanMessage:
    """Return a tool run as a child span of its generation, without the query or the result."""
    start_ns = generation_start_ns + run.began_ms * NS_PER_MS
    return SpanMessage(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_span_id,
        name=f"{_TOOL_OPERATION} {run.tool}",
        kind=_KIND_INTERNAL,
        start_ns=start_ns,
        end_ns=start_ns + run.duration_ms * NS_PER_MS,
        attributes={
            "gen_ai.operation.name": _TOOL_OPERATION,
            "gen_ai.tool.name": run.tool,
            "error.type": run.error,
            "tollgate.server_tool.engine": run.engine or None,
            "tollgate.server_tool.round": run.round,
            "tollgate.server_tool.query_hash": run.query_hash,
            "tollgate.cost.usd": usd_text(run.cost_nano_usd),
        },
        error=run.error,
    )


def _describe_generation(record: GenerationRecord, operation: str) -> SpanAttributes:
    usage = record.usage
    first_token_ms = record.first_token_ms
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": record.provider,
        "gen_ai.request.model": record.trace.requested_model,
        "gen_ai.request.stream": record.streamed,
        "gen_ai.response.model": record.model,
        "gen_ai.response.id": record.upstream_id,
        "gen_ai.response.finish_reasons": None if record.finish is None else (record.finish,),
        "gen_ai.response.time_to_first_chunk": (
            None if first_token_ms is None else first_token_ms / 1000
        ),
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_input_tokens,
        "gen_ai.usage.cache_write.input_tokens": usage.cache_write_input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        "gen_ai.usage.cost": record.cost_nano_usd / NANO_USD_PER_USD,
        "error.type": record.error,
        "tollgate.generation.id": record.id,
        "tollgate.workspace.id": record.workspace_id,
        "tollgate.key.id": record.key_id,
        "tollgate.outcome": record.outcome,
        "tollgate.attempts": len(record.attempts),
        "tollgate.rounds": len(record.rounds) or None,
        "tollgate.server_tool.runs": len(record.runs) or None,
        "tollgate.catalog.sha": record.catalog_sha,
        "tollgate.cost.usd": usd_text(record.cost_nano_usd),
    }
