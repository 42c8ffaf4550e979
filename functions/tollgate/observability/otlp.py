"""Exports generations as OpenTelemetry spans once their answers have ended.

Protocol: OTLP/HTTP with protobuf, which every receiver accepts ("OTLP Specification 1.9.0",
opentelemetry.io, 2026-11-21). A span contains a prompt and an answer only with `content=True`.
"""

import asyncio
import logging
from collections import deque
from contextlib import closing
from typing import Final, Protocol

from msgspec.structs import replace

from tollgate.core import tracing, transcripts
from tollgate.core.clock import Clock
from tollgate.core.errors import LedgerError
from tollgate.core.ids import IdSource
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.secret import SecretReference
from tollgate.core.tracing import CollectorError
from tollgate.engine.gateway import Journal
from tollgate.http1.errors import HttpError
from tollgate.http1.pool import Pool
from tollgate.http1.request import USUAL_HEADERS, Request
from tollgate.observability.messages import describe_content
from tollgate.observability.protobuf import SpanAttributes, SpanMessage, encode_export
from tollgate.observability.spans import NS_PER_MS, SCHEMA_URL, span_of, span_of_run
from tollgate.stores.ports.base import SecretStore

WAITING_MAX: Final = 512
WAITING_BYTES_MAX: Final = 4 * 1024 * 1024
_TIMEOUT_S: Final = 2.0
_CONNECT_TIMEOUT_S: Final = 1.0
_CONNECTIONS_MAX: Final = 100
_REPLY_BYTES_MAX: Final = 64 * 1024
_PATH: Final = "/v1/traces"
# Verdicts after which a text may leave the gateway unchanged.
_HARMLESS: Final = frozenset({"pass", "flag"})
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
            own_headers = {"content-type": "application/x-protobuf"}
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

    At most `WAITING_MAX` spans of 4 MB wait; each further span replaces the oldest ones. The log
    counts replaced and refused spans, which never fail a request. `content` adds prompts and
    answers to the spans of keys that store them.
    """

    def __init__(
        self,
        inner: Journal,
        collector: Collector,
        clock: Clock,
        ids: IdSource,
        *,
        content: bool = False,
    ) -> None:
        self._inner = inner
        self._collector = collector
        self._clock = clock
        self._ids = ids
        self._content = content
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._lost = 0
        self._sending = asyncio.Lock()

    def settled(self, record: GenerationRecord) -> None:
        """Keep the spans for a generation and its tool runs, if the caller's trace is sampled."""
        self._inner.settled(record)
        span = tracing.current() or tracing.new_trace(self._ids)
        if not span.sampled:
            return
        end_ns = int(self._clock.now_s() * 1e9)
        self._keep(span_of(record, span, end_ns, self._content_of(record)))
        for run in record.runs:
            below = replace(
                span, span_id=self._ids.random_bytes(8).hex(), parent_span_id=span.span_id
            )
            self._keep(span_of_run(run, below, end_ns - record.duration_ms * NS_PER_MS))

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

    def _content_of(self, record: GenerationRecord) -> SpanAttributes:
        """Return the attributes for the prompt and the answers; none without every consent.

        The collector is not known to meet a prompt policy, and must not get what a guardrail keeps
        from providers or callers.
        """
        transcript = transcripts.shared_transcript() if self._content else None
        if transcript is None or transcript.request.preferences.prompt_policy is not None:
            return {}
        if record.trace.prompt_policies or not _HARMLESS.issuperset(
            each.verdict for each in record.judgements
        ):
            return {}
        return describe_content(transcript, record.finish)

    def _keep(self, span: SpanMessage) -> None:
        encoded = span.encode()
        self._waiting.append(encoded)
        self._waiting_bytes += len(encoded)
        while len(self._waiting) > WAITING_MAX or self._waiting_bytes > WAITING_BYTES_MAX:
            self._waiting_bytes -= len(self._waiting.popleft())
            self._lost += 1

    async def flush(self) -> None:
        """Send the waiting spans in one request; later spans wait for the next flush."""
        if not self._waiting or self._sending.locked():
            return
        async with self._sending:
            spans = list(self._waiting)
            self._waiting.clear()
            self._waiting_bytes = 0
            body = encode_export(spans, service="tollgate", schema_url=SCHEMA_URL)
            try:
                await self._collector.send(body)
            except CollectorError as failure:
                self._lost += len(spans)
                fields = {"failure": str(failure), "spans_lost": self._lost}
                _LOGGER.warning("spans not sent", extra={"fields": fields})
            else:
                self._lost = 0
