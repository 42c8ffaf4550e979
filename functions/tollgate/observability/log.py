"""One canonical JSON line a generation, and a line for what went wrong."""

import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from pydantic import JsonValue
from pydantic_core import to_json
from typing_extensions import override

from tollgate.core.generation import GenerationRecord
from tollgate.core.money import usd_text

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
    """Writes generations to the log."""

    def settled(self, record: GenerationRecord) -> None:
        """One line a generation."""
        _LOGGER.info("generation", extra={"fields": canonical(record)})

    def unsettled(self, record: GenerationRecord, failure: Exception) -> None:
        """The whole record, so that it can be replayed before the sweeper releases the hold."""
        fields = {"failure": type(failure).__name__, "record": to_json(record).decode()}
        _LOGGER.error("generation not settled", extra={"fields": fields})

    def defect(self, error: Exception, request_id: str) -> None:
        """The traceback of something of ours that broke."""
        _LOGGER.error("defect", exc_info=error, extra={"fields": {"request_id": request_id}})


def canonical(record: GenerationRecord) -> Mapping[str, JsonValue]:
    """The fields of a generation's line."""
    return {
        "generation_id": record.id,
        "workspace_id": record.workspace_id,
        "key_id": record.key_id,
        "outcome": record.outcome,
        "error": record.error,
        "model": record.model,
        "provider": record.provider,
        "requested_model": record.trace.requested_model,
        "streamed": record.streamed,
        "input_tokens": record.usage.input_tokens,
        "output_tokens": record.usage.output_tokens,
        "usage_source": record.usage_source,
        "cost_usd": usd_text(record.cost_nano_usd),
        "attempts": len(record.attempts),
        "duration_ms": record.duration_ms,
        "first_token_ms": record.first_token_ms,
        "catalog_sha": record.catalog_sha,
        "client_request_id": record.client_request_id,
    }
