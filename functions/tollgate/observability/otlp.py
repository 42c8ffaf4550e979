"""Exports generations as OpenTelemetry spans once their answers have ended.

Protocol: OTLP/HTTP with JSON, "OTLP Specification 1.9.0", opentelemetry.io, 2026-11-21. Names: the
OpenTelemetry GenAI conventions 0.1.0 (github.com/open-telemetry/semantic-conventions-genai,
2026-11-27), all in development; their schema is sent with each request, so that a collector can
translate names that change. Tollgate's own names begin with `tollgate.`. No span contains a prompt
or an answer.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from contextlib import closing
from typing import Final, Protocol

from msgspec.structs import replace
from pydantic_core import to_json

from tollgate.core import tracing
from tollgate.core.clock import Clock
from tollgate.core.errors import LedgerError
from tollgate.core.ids import IdSource
from tollgate.core.json_value import JsonValue
from tollgate.core.money.amounts import usd_text
from tollgate.core.records.generation import GenerationRecord, RunRecord
from tollgate.core.secret import SecretReference
from tollgate.core.tracing import CollectorError, Span
from tollgate.core.work.kinds import WorkKind
from tollgate.engine.gateway import Journal
from tollgate.http1.errors import HttpError
from tollgate.http1.pool import Pool
from tollgate.http1.request import USUAL_HEADERS, Request
from tollgate.stores.ports.base import SecretStore

WAITING_MAX: Final = 512
_KIND_INTERNAL: Final = 1
_KIND_CLIENT: Final = 3
_NS_PER_MS: Final = 1_000_000
_STATUS_ERROR: Final = 2
_TIMEOUT_S: Final = 2.0
_CONNECT_TIMEOUT_S: Final = 1.0
_CONNECTIONS_MAX: Final = 100
_REPLY_BYTES_MAX: Final = 64 * 1024
_PATH: Final = "/v1/traces"
_SCHEMA_URL: Final = "https://opentelemetry.io/schemas/gen-ai/0.1.0"
# The operations that the conventions name; other kinds of work keep their own names.
_OPERATIONS: Final[Mapping[WorkKind, str]] = {"embedding": "embeddings"}
_FORMAT_OPERATIONS: Final = {"completions": "text_completion"}
_LOGGER: Final = logging.getLogger("tollgate.telemetry")


class Collector(Protocol):
    """A receiver of spans."""

    async def send(self, body: bytes) -> None:
        """Send one export request; raise CollectorError if the request is not accepted."""


class OtlpCollector:
    """Implements `Collector` over HTTP; works only in the event loop of its first call.

    `headers` names a secret with the headers for the collector, in the format of
    OTEL_EXPORTER_OTLP_HEADERS: `name=value,name=value`.
    """

    def __init__(
        self, endpoint_url: str, secrets: SecretStore, headers: SecretReference | None
    ) -> None:
        self._url = endpoint_url.rstrip("/") + _PATH
        self._secrets = secrets
        self._headers = headers
        self._pool = Pool(_CONNECTIONS_MAX)

    async def send(self, body: bytes) -> None:
        """Send the request only once, because a retry would delay the next export."""
        try:
            own_headers = {"content-type": "application/json"}
            headers = {**USUAL_HEADERS, **await self._read_headers(), **own_headers}
            request = Request(method="POST", url=self._url, headers=headers, body=(body,))
            async with asyncio.timeout(_TIMEOUT_S):
                with closing(await self._pool.send(request, connect_s=_CONNECT_TIMEOUT_S)) as reply:
                    status = reply.status
                    # The connection can be reused only after the whole body was read.
                    await reply.read_all(_REPLY_BYTES_MAX)
        except (HttpError, TimeoutError, LedgerError) as failed:
            raise CollectorError(type(failed).__name__) from failed
        if status != 200:
            raise CollectorError(f"HTTP {status}")

    async def close(self) -> None:
        """Close the connections; the next call opens new connections."""
        await self._pool.close()

    async def _read_headers(self) -> dict[str, str]:
        if self._headers is None:
            return {}
        secret = await self._secrets.read(self._headers)
        if secret is None:
            raise CollectorError("the collector's headers are not in Secrets Manager")
        pairs = [pair.partition("=") for pair in secret.split(",") if pair.strip()]
        return {name.strip(): value.strip() for name, _, value in pairs}


class SpanJournal:
    """A journal that forwards every call, and keeps generations as spans until `flush`.

    At most `WAITING_MAX` spans wait; each further span replaces the oldest one. The log counts
    replaced and refused spans, which never fail a request.
    """

    def __init__(self, inner: Journal, collector: Collector, clock: Clock, ids: IdSource) -> None:
        self._inner = inner
        self._collector = collector
        self._clock = clock
        self._ids = ids
        self._waiting: deque[JsonValue] = deque(maxlen=WAITING_MAX)
        self._lost = 0
        self._sending = asyncio.Lock()

    def settled(self, record: GenerationRecord) -> None:
        """Keep the spans for a generation and its tool runs, if the caller's trace is sampled."""
        self._inner.settled(record)
        span = tracing.current() or tracing.new_trace(self._ids)
        if not span.sampled:
            return
        end_ns = int(self._clock.now_s() * 1e9)
        self._keep(otlp_span(record, span, end_ns))
        for run in record.runs:
            below = replace(
                span, span_id=self._ids.random_bytes(8).hex(), parent_span_id=span.span_id
            )
            self._keep(_otlp_span_of_run(run, below, end_ns - record.duration_ms * _NS_PER_MS))

    def unsettled(self, record: GenerationRecord, failure: Exception) -> None:
        """Forward the call; a generation that could not be settled has no span."""
        self._inner.unsettled(record, failure)

    def endpoint_cooled_down(self, endpoint_id: str) -> None:
        """Forward the call."""
        self._inner.endpoint_cooled_down(endpoint_id)

    def catalog_rejected(self, what: str, failure: Exception, *, serving: str) -> None:
        """Forward the call."""
        self._inner.catalog_rejected(what, failure, serving=serving)

    def unexpected_error(self, error: Exception, request_id: str) -> None:
        """Forward the call."""
        self._inner.unexpected_error(error, request_id)

    def _keep(self, span: JsonValue) -> None:
        self._lost += len(self._waiting) == WAITING_MAX
        self._waiting.append(span)

    async def flush(self) -> None:
        """Send the waiting spans in one request; later spans wait for the next flush."""
        if not self._waiting or self._sending.locked():
            return
        async with self._sending:
            spans = list(self._waiting)
            self._waiting.clear()
            try:
                await self._collector.send(to_json(_export_request(spans)))
            except CollectorError as failure:
                self._lost += len(spans)
                fields = {"failure": str(failure), "spans_lost": self._lost}
                _LOGGER.warning("spans not sent", extra={"fields": fields})
            else:
                self._lost = 0


def otlp_span(record: GenerationRecord, span: Span, end_ns: int) -> JsonValue:
    """Return a generation that ended at `end_ns` as OTLP JSON, with large numbers as strings."""
    operation = _FORMAT_OPERATIONS.get(
        record.ingress_format, _OPERATIONS.get(record.trace.kind, record.trace.kind)
    )
    return _render(
        span,
        f"{operation} {record.trace.requested_model}",
        kind=_KIND_CLIENT,
        start_ns=end_ns - record.duration_ms * _NS_PER_MS,
        end_ns=end_ns,
        attributes=_attributes(record, operation),
        error=record.error,
    )


def _otlp_span_of_run(run: RunRecord, span: Span, generation_start_ns: int) -> JsonValue:
    """Return a tool run as a child span of its generation, without the query or the result."""
    start_ns = generation_start_ns + run.began_ms * _NS_PER_MS
    return _render(
        span,
        f"execute_tool {run.tool}",
        kind=_KIND_INTERNAL,
        start_ns=start_ns,
        end_ns=start_ns + run.duration_ms * _NS_PER_MS,
        attributes={
            "gen_ai.operation.name": _text("execute_tool"),
            "gen_ai.tool.name": _text(run.tool),
            "error.type": _text(run.error),
            "tollgate.server_tool.engine": _text(run.engine or None),
            "tollgate.server_tool.round": _number(run.round),
            "tollgate.server_tool.query_hash": _text(run.query_hash),
            "tollgate.cost.usd": _text(usd_text(run.cost_nano_usd)),
        },
        error=run.error,
    )


def _render(
    span: Span,
    name: str,
    *,
    kind: int,
    start_ns: int,
    end_ns: int,
    attributes: Mapping[str, JsonValue],
    error: str | None,
) -> JsonValue:
    rendered: dict[str, JsonValue] = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(start_ns),
        "endTimeUnixNano": str(end_ns),
        "attributes": [
            {"key": key, "value": value} for key, value in attributes.items() if value is not None
        ],
    }
    if span.parent_span_id is not None:
        rendered["parentSpanId"] = span.parent_span_id
    if error is not None:
        rendered["status"] = {"code": _STATUS_ERROR, "message": error}
    return rendered


def _attributes(record: GenerationRecord, operation: str) -> Mapping[str, JsonValue]:
    usage = record.usage
    first_token_ms = record.first_token_ms
    return {
        "gen_ai.operation.name": _text(operation),
        "gen_ai.provider.name": _text(record.provider),
        "gen_ai.request.model": _text(record.trace.requested_model),
        "gen_ai.request.stream": {"boolValue": record.streamed},
        "gen_ai.response.model": _text(record.model),
        "gen_ai.response.id": _text(record.upstream_id),
        "gen_ai.response.finish_reasons": _texts(record.finish),
        "gen_ai.response.time_to_first_chunk": (
            None if first_token_ms is None else {"doubleValue": first_token_ms / 1000}
        ),
        "gen_ai.usage.input_tokens": _number(usage.input_tokens),
        "gen_ai.usage.cache_read.input_tokens": _number(usage.cache_read_input_tokens),
        "gen_ai.usage.cache_creation.input_tokens": _number(usage.cache_write_input_tokens),
        "gen_ai.usage.output_tokens": _number(usage.output_tokens),
        "gen_ai.usage.reasoning.output_tokens": _number(usage.reasoning_tokens),
        "error.type": _text(record.error),
        "tollgate.generation.id": _text(record.id),
        "tollgate.workspace.id": _text(record.workspace_id),
        "tollgate.key.id": _text(record.key_id),
        "tollgate.outcome": _text(record.outcome),
        "tollgate.attempts": _number(len(record.attempts)),
        "tollgate.rounds": _number(len(record.rounds) or None),
        "tollgate.server_tool.runs": _number(len(record.runs) or None),
        "tollgate.catalog.sha": _text(record.catalog_sha),
        "tollgate.cost.usd": _text(usd_text(record.cost_nano_usd)),
    }


def _text(value: str | None) -> JsonValue:
    return None if value is None else {"stringValue": value}


def _texts(value: str | None) -> JsonValue:
    return None if value is None else {"arrayValue": {"values": [{"stringValue": value}]}}


def _number(value: int | None) -> JsonValue:
    return None if value is None else {"intValue": str(value)}


def _export_request(spans: list[JsonValue]) -> JsonValue:
    resource: JsonValue = {
        "attributes": [{"key": "service.name", "value": {"stringValue": "tollgate"}}]
    }
    scope: JsonValue = {"scope": {"name": "tollgate"}, "spans": spans, "schemaUrl": _SCHEMA_URL}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}
