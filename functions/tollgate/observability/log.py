"""One canonical JSON line a generation, and a line for what went wrong."""

import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec
from pydantic import JsonValue
from pydantic_core import to_json
from typing_extensions import override

from tollgate.core import tracing
from tollgate.core.generation import AttemptRecord, BillLine, GenerationRecord
from tollgate.core.money import usd_text
from tollgate.observability.emf import ENDPOINTS_RESTED, KEPT_BACK, UNSETTLED, EmbeddedMetrics
from tollgate.routing.price import UNPRICED_ITEMS

_LOGGER: Final = logging.getLogger("tollgate")


class JsonFormatter(logging.Formatter):
    """Writes a record as one JSON object; fields come in the record's `fields`."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        # Lambda filters a line by its `level` and `timestamp` ("Log and monitor Python Lambda
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
    """Send records of every logger to stdout, a JSON object a line."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


class LogJournal:
    """Writes generations to the log; the lines are their metrics too."""

    def __init__(self, metrics: EmbeddedMetrics) -> None:
        self._metrics = metrics

    def settled(self, record: GenerationRecord) -> None:
        """One line a generation, and one for each attempt of it that failed."""
        fields = {**canonical_line(record), **self._metrics.of_generation(record)}
        _LOGGER.info("generation", extra={"fields": fields})
        for attempt in record.attempts:
            if attempt.error is not None:
                self._attempt_failed(record, attempt)
        for line in record.lines:
            if line.item in UNPRICED_ITEMS:
                self._unpriced(record, line)

    def unsettled(self, record: GenerationRecord, failure: Exception) -> None:
        """The whole record, so that it can be replayed before the sweeper releases the hold."""
        fields = {
            "failure": type(failure).__name__,
            "record": msgspec.json.encode(record).decode(),
            **self._metrics.one(UNSETTLED),
        }
        _LOGGER.error("generation not settled", extra={"fields": fields})

    def endpoint_cooled_down(self, endpoint_id: str) -> None:
        """An endpoint has failed so often that it is left alone for a while."""
        fields = {"endpoint": endpoint_id, **self._metrics.one(ENDPOINTS_RESTED)}
        _LOGGER.warning("endpoint rests", extra={"fields": fields})

    def catalog_rejected(self, what: str, failure: Exception, *, serving: str) -> None:
        """A publication that does not take effect, and what serves in its place."""
        fields = {
            "what": what,
            "reason": str(failure) or type(failure).__name__,
            "serving": serving,
            **self._metrics.one(KEPT_BACK),
        }
        _LOGGER.error("catalog kept back", extra={"fields": fields})

    def unexpected_error(self, error: Exception, request_id: str) -> None:
        """The traceback of something of ours that broke."""
        _LOGGER.error("defect", exc_info=error, extra={"fields": {"request_id": request_id}})

    def _unpriced(self, record: GenerationRecord, line: BillLine) -> None:
        """A provider charges for what nobody here pays: the catalog lacks a price."""
        fields = {
            "generation_id": record.id,
            "model": record.model,
            "provider": record.provider,
            "item": line.item,
            "quantity": line.quantity,
        }
        _LOGGER.warning("usage without a price", extra={"fields": fields})

    def _attempt_failed(self, record: GenerationRecord, attempt: AttemptRecord) -> None:
        fields = {
            "generation_id": record.id,
            "model": attempt.model,
            "provider": attempt.provider,
            "error": attempt.error,
            "status": attempt.status,
            "duration_ms": attempt.duration_ms,
            **self._metrics.of_failed_attempt(),
        }
        _LOGGER.info("attempt failed", extra={"fields": fields})


def canonical_line(record: GenerationRecord) -> Mapping[str, JsonValue]:
    """The fields of a generation's line: who asked for what, who served it, what came of it.

    Keys are told by their id; what was said is nowhere in a record.
    """
    span = tracing.current()
    return {
        "generation_id": record.id,
        "client_request_id": record.client_request_id,
        "trace_id": span.trace_id if span else None,
        "upstream_id": record.upstream_id,
        "workspace_id": record.workspace_id,
        "key_id": record.key_id,
        "format": record.ingress_format,
        "streamed": record.streamed,
        "requested_model": record.trace.requested_model,
        "route": record.trace.route,
        "rule": record.trace.rule,
        "model": record.model,
        "provider": record.provider,
        "upstream_model": record.upstream_model,
        "attempts": len(record.attempts),
        "outcome": record.outcome,
        "error": record.error,
        "finish_reason": record.finish,
        "input_tokens": record.usage.input_tokens,
        "cache_read_input_tokens": record.usage.cache_read_input_tokens,
        "output_tokens": record.usage.output_tokens,
        "reasoning_tokens": record.usage.reasoning_tokens,
        "web_searches": record.usage.web_searches,
        "usage_source": record.usage_source,
        "cost_usd": usd_text(record.cost_nano_usd),
        "first_token_ms": record.first_token_ms,
        "duration_ms": record.duration_ms,
        "catalog_sha": record.catalog_sha,
    }
