"""Logs one JSON line for each generation, and another line for each failure."""

import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec.structs import asdict
from pydantic_core import to_json
from typing_extensions import override

from tollgate.core import tracing
from tollgate.core.json_value import JsonValue
from tollgate.core.money.amounts import usd_text
from tollgate.core.records.generation import (
    AttemptRecord,
    BillLine,
    GenerationRecord,
    JudgementRecord,
    RunRecord,
)
from tollgate.core.usage import PIECES
from tollgate.observability.emf import (
    CATALOGS_REJECTED,
    ENDPOINTS_RESTED,
    UNSETTLED,
    EmbeddedMetrics,
)
from tollgate.routing.price import UNPRICED_ITEMS

_LOGGER: Final = logging.getLogger("tollgate")


class JsonFormatter(logging.Formatter):
    """Formats a log record as a JSON object, with the entries of `record.fields`."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        # Lambda filters lines by `level` and `timestamp` ("Log and monitor Python Lambda
        # functions", 2026-11).
        line: dict[str, JsonValue] = {
            "timestamp": datetime.fromtimestamp(record.created, tz=UTC).isoformat(),
            "level": record.levelname,
            "message": record.getMessage(),
            "logger": record.name,
        }
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return to_json(line).decode()


def configure_logging() -> None:
    """Write the records of all loggers to stdout, as one JSON object per line."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


class LogJournal:
    """Implements `engine.gateway.Journal`; log lines also contain the metrics."""

    def __init__(self, metrics: EmbeddedMetrics) -> None:
        self._metrics = metrics

    def settled(self, record: GenerationRecord) -> None:
        """Log a generation, and each failure or missing price within it."""
        fields = {**canonical_line(record), **self._metrics.measure_generation(record)}
        _LOGGER.info("generation", extra={"fields": fields})
        if record.usage_source == "bounded":
            self._log_bounded(record)
        for attempt in record.attempts:
            if attempt.error is not None:
                self._log_failed_attempt(record, attempt)
        for run in record.runs:
            if run.error is not None:
                self._log_failed_run(record, run)
        for judgement in record.judgements:
            self._log_judgement(record, judgement)
        for line in record.lines:
            if line.item in UNPRICED_ITEMS:
                self._log_unpriced(record, line)

    def unsettled(self, record: GenerationRecord, failure: Exception) -> None:
        """Log the whole record, so that an operator can act before the sweeper ends the hold."""
        fields = {
            "failure": type(failure).__name__,
            "record": msgspec.json.encode(record).decode(),
            **self._metrics.count(UNSETTLED),
        }
        _LOGGER.error("generation not settled", extra={"fields": fields})

    def endpoint_cooled_down(self, endpoint_id: str) -> None:
        """Log the start of an endpoint's cooldown."""
        fields = {"endpoint": endpoint_id, **self._metrics.count(ENDPOINTS_RESTED)}
        _LOGGER.warning("endpoint rests", extra={"fields": fields})

    def catalog_rejected(self, what: str, failure: Exception, *, serving: str) -> None:
        """Log that a published catalog cannot be served, and the catalog that is used instead."""
        fields = {
            "what": what,
            "reason": str(failure) or type(failure).__name__,
            "serving": serving,
            **self._metrics.count(CATALOGS_REJECTED),
        }
        _LOGGER.error("catalog rejected", extra={"fields": fields})

    def unexpected_error(self, error: Exception, request_id: str) -> None:
        """Log the traceback of a defect."""
        _LOGGER.error("defect", exc_info=error, extra={"fields": {"request_id": request_id}})

    def _log_unpriced(self, record: GenerationRecord, line: BillLine) -> None:
        """Log usage that the provider bills and for which the catalog has no price."""
        fields = {
            "generation_id": record.id,
            "model": record.model,
            "provider": record.provider,
            "item": line.item,
            "quantity": line.quantity,
        }
        _LOGGER.warning("usage without a price", extra={"fields": fields})

    def _log_bounded(self, record: GenerationRecord) -> None:
        """Log that a provider reported impossibly high usage, so the maximum is billed."""
        fields = {
            "generation_id": record.id,
            "model": record.model,
            "provider": record.provider,
            "billed_input_tokens": record.usage.input_tokens,
            "billed_output_tokens": record.usage.output_tokens,
            **self._metrics.count_bounded_usage(),
        }
        _LOGGER.warning("usage beyond its bound", extra={"fields": fields})

    def _log_failed_attempt(self, record: GenerationRecord, attempt: AttemptRecord) -> None:
        fields = {
            "generation_id": record.id,
            "model": attempt.model,
            "provider": attempt.provider,
            "error": attempt.error,
            "status": attempt.status,
            "duration_ms": attempt.duration_ms,
            **self._metrics.count_failed_attempt(),
        }
        _LOGGER.info("attempt failed", extra={"fields": fields})

    def _log_judgement(self, record: GenerationRecord, judgement: JudgementRecord) -> None:
        fields = {
            "generation_id": record.id,
            **asdict(judgement),
            **self._metrics.count_judgements(judgement.pieces),
        }
        _LOGGER.info("guardrail judged", extra={"fields": fields})

    def _log_failed_run(self, record: GenerationRecord, run: RunRecord) -> None:
        fields = {
            "generation_id": record.id,
            "tool": run.tool,
            "engine": run.engine,
            "round": run.round,
            "error": run.error,
            "duration_ms": run.duration_ms,
        }
        _LOGGER.info("tool failed", extra={"fields": fields})


def canonical_line(record: GenerationRecord) -> Mapping[str, JsonValue]:
    """Return the log fields of a generation: caller, request, endpoint, outcome and cost.

    The fields contain the key's id, but neither the key, the prompt nor the answer.
    """
    span = tracing.current()
    return {
        "generation_id": record.id,
        "client_request_id": record.client_request_id,
        "api_gateway_request_id": record.api_gateway_request_id,
        "lambda_request_id": record.lambda_request_id,
        "trace_id": span.trace_id if span else None,
        "upstream_id": record.upstream_id,
        "workspace_id": record.workspace_id,
        "key_id": record.key_id,
        "team": record.labels.get("team"),
        "format": record.ingress_format,
        "streamed": record.streamed,
        "requested_model": record.trace.requested_model,
        "route": record.trace.route,
        "rule": record.trace.rule,
        "preset": record.trace.preset,
        "candidate": record.trace.is_candidate,
        "bend": record.trace.bend,
        "quotas_used_up": list(record.trace.quotas_used_up),
        "limit_warning": record.limit_warning,
        "prompt_policies": [policy.text for policy in record.trace.every_policy],
        "sorted_by": record.trace.sorted_by,
        "explored": record.trace.explored,
        "probe": record.trace.probe,
        "model": record.model,
        "provider": record.provider,
        "upstream_model": record.upstream_model,
        "attempts": len(record.attempts),
        "rounds": len(record.rounds) or 1,
        "server_tools": [run.tool for run in record.runs],
        "guardrails": {
            f"{each.guardrail}.{each.stage}": each.verdict for each in record.judgements
        },
        "reused_generation": record.reused.generation_id if record.reused else None,
        "shadow_of": record.shadow.generation_id if record.shadow else None,
        "outcome": record.outcome,
        "error": record.error,
        "finish_reason": record.finish,
        "withheld_tool_calls": record.withheld_calls,
        "adapted": list(record.adapted),
        "forwarded": list(record.forwarded),
        "input_tokens": record.usage.input_tokens,
        "cache_read_input_tokens": record.usage.cache_read_input_tokens,
        "output_tokens": record.usage.output_tokens,
        "reasoning_tokens": record.usage.reasoning_tokens,
        "web_searches": record.usage.web_searches,
        **{unit: getattr(record.usage, unit) for unit in PIECES},
        "usage_source": record.usage_source,
        "cost_usd": usd_text(record.cost_nano_usd),
        "first_token_ms": record.first_token_ms,
        "duration_ms": record.duration_ms,
        "catalog_sha": record.catalog_sha,
    }
