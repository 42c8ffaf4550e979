"""The bill of a generation, which outlives its record."""

from msgspec.structs import replace

from tollgate.core.records.generation import GenerationRecord, RoutingTrace


def bill_of(record: GenerationRecord) -> GenerationRecord:
    """Return a record with only what explains its cost.

    Fields are named one by one, so that a bill gets a new field only if it is added here. What
    callers said about a person and the texts of providers are left out.
    """
    trace = record.trace
    return GenerationRecord(
        id=record.id,
        created_s=record.created_s,
        workspace_id=record.workspace_id,
        key_id=record.key_id,
        key_label=record.key_label,
        labels=record.labels,
        outcome=record.outcome,
        error=record.error,
        streamed=record.streamed,
        catalog_sha=record.catalog_sha,
        trace=RoutingTrace(
            requested_model=trace.requested_model,
            route=trace.route,
            rule=trace.rule,
            draw_key_hash="",
            tier=None,
            capabilities=(),
            estimated_input_tokens=0,
            output_tokens_max=None,
            kind=trace.kind,
            preset=trace.preset,
        ),
        model=record.model,
        provider=record.provider,
        upstream_model=record.upstream_model,
        service_tier=record.service_tier,
        usage=record.usage,
        usage_source=record.usage_source,
        cost_nano_usd=record.cost_nano_usd,
        lines=record.lines,
        rounds=record.rounds,
        runs=tuple(replace(run, query_hash="") for run in record.runs),
        attempts=tuple(replace(attempt, provider_words="") for attempt in record.attempts),
        reused=record.reused,
        shadow=record.shadow,
        duration_ms=record.duration_ms,
        first_token_ms=record.first_token_ms,
        ingress_format=record.ingress_format,
        is_bill=True,
    )
