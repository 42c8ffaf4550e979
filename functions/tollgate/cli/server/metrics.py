"""Prometheus metrics for a server process; `observability/emf.py` documents their meanings."""

import re
from collections.abc import Mapping
from typing import Final

from msgspec.structs import fields
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from tollgate.core.records.generation import GenerationRecord
from tollgate.core.usage import Usage
from tollgate.engine.gateway import Journal
from tollgate.observability.emf import (
    ATTEMPTS_FAILED,
    CATALOGS_REJECTED,
    ENDPOINTS_RESTED,
    GUARDRAIL_JUDGEMENTS,
    UNSETTLED,
    USAGE_BOUNDED,
    Metric,
    measure,
)

# Maximum number of values for a label, since a process may serve many catalogs over time.
_VALUES_MAX: Final = 500
_OTHER: Final = "other"
_NONE: Final = ""
_SECONDS: Final = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2.5, 5, 10, 20, 40, 80, 160, 320, 900)
_USAGE: Final = tuple(each.name for each in fields(Usage))
_WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


class ServerMetrics:
    """Metrics of this process since its start."""

    def __init__(self) -> None:
        # Series with creation times are disabled, because they would double the size of the reply.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        self._made: dict[str, Counter | Histogram] = {}
        self._values: dict[str, set[str]] = {}
        self._requests = self._counter(
            "tollgate_requests", "Requests by route and status.", ("route", "status")
        )
        self._refusals = self._counter(
            "tollgate_refusals", "Errors sent to callers, by code.", ("route", "code")
        )
        self._usage = self._counter(
            "tollgate_usage", "Tokens and other units by class.", ("model", "provider", "kind")
        )
        self._attempts = self._counter(
            "tollgate_attempts", "Attempts at endpoints.", ("model", "provider", "error")
        )
        self._defects = self._counter("tollgate_defects", "Unexpected errors of the gateway.", ())
        self._in_flight = Gauge(
            "tollgate_requests_in_flight",
            "Metered requests that are being answered; each has a hold.",
            registry=self._registry,
        )
        self._tasks = Gauge(
            "tollgate_tasks",
            "Unfinished tasks in the event loop.",
            registry=self._registry,
        )

    def render(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self._registry)

    def note_tasks(self, count: int) -> None:
        """Set the current number of tasks in the event loop."""
        self._tasks.set(count)

    def begin_request(self) -> None:
        """Count the start of a metered request."""
        self._in_flight.inc()

    def end_request(self) -> None:
        """Count the end of a metered request."""
        self._in_flight.dec()

    def count_reply(self, route: str, status: str) -> None:
        """Count a reply by route and status."""
        self._requests.labels(route, status).inc()

    def count_refusal(self, route: str, code: str) -> None:
        """Count an error by route and code."""
        self._refusals.labels(route, code).inc()

    def count_defect(self) -> None:
        """Count an unexpected error."""
        self._defects.inc()

    def count_generation(self, record: GenerationRecord) -> None:
        """Count a settled generation, with its usage and attempts."""
        served = {
            "model": self._bounded("model", record.model),
            "provider": self._bounded("provider", record.provider),
        }
        for metric, value in measure(record).items():
            self._add(metric, value, {**served, "outcome": record.outcome})
        if record.usage_source == "bounded":
            self._add(USAGE_BOUNDED, 1, {"provider": served["provider"]})
        for judgement in record.judgements:
            labels = {
                "guardrail": self._bounded("guardrail", judgement.guardrail),
                "verdict": judgement.verdict,
            }
            self._add(GUARDRAIL_JUDGEMENTS, judgement.pieces, labels)
        for kind in _USAGE:
            count: int | None = getattr(record.usage, kind)
            if count:
                self._usage.labels(**served, kind=kind).inc(count)
        for attempt in record.attempts:
            provider = self._bounded("provider", attempt.provider)
            model, error = self._bounded("model", attempt.model), attempt.error or _NONE
            self._attempts.labels(model, provider, error).inc()
            if attempt.error is not None:
                self._add(ATTEMPTS_FAILED, 1, {"provider": provider, "error": attempt.error})

    def count(self, metric: Metric, **labels: str) -> None:
        """Add one to a metric; excess label values become `other`."""
        self._add(metric, 1, {name: self._bounded(name, value) for name, value in labels.items()})

    def _add(self, metric: Metric, value: int, labels: Mapping[str, str]) -> None:
        name = prometheus_name(metric)
        collector = self._made.get(name)
        if collector is None:
            collector = self._made[name] = self._make(metric, name, tuple(labels))
        child = collector.labels(**labels) if labels else collector
        if isinstance(child, Histogram):
            child.observe(value / 1_000)
        else:
            child.inc(value)

    def _make(self, metric: Metric, name: str, labels: tuple[str, ...]) -> Counter | Histogram:
        words = f"{metric.name} of the log lines."
        if metric.unit == "Milliseconds":
            return Histogram(name, words, labels, buckets=_SECONDS, registry=self._registry)
        return self._counter(name, words, labels)

    def _counter(self, name: str, words: str, labels: tuple[str, ...]) -> Counter:
        return Counter(name, words, labels, registry=self._registry)

    def _bounded(self, label: str, value: str | None) -> str:
        """Return a label's value, or `other` if the label has too many values."""
        known = self._values.setdefault(label, set())
        if value is None or value in known:
            return value or _NONE
        if len(known) == _VALUES_MAX:
            return _OTHER
        known.add(value)
        return value


def prometheus_name(metric: Metric) -> str:
    """Return a metric's name for Prometheus, without the counter suffix `_total`."""
    words = _WORD.sub("_", metric.name).lower()
    return f"tollgate_{words}_seconds" if metric.unit == "Milliseconds" else f"tollgate_{words}"


class MeasuringJournal:
    """A journal that counts each event, then passes it to another journal."""

    def __init__(self, journal: Journal, metrics: ServerMetrics) -> None:
        self._journal = journal
        self._metrics = metrics

    def settled(self, record: GenerationRecord) -> None:
        """Count and log a generation."""
        self._metrics.count_generation(record)
        self._journal.settled(record)

    def unsettled(self, record: GenerationRecord, failure: Exception) -> None:
        """Count and log a generation whose record could not be stored."""
        self._metrics.count(UNSETTLED)
        self._journal.unsettled(record, failure)

    def endpoint_cooled_down(self, endpoint_id: str) -> None:
        """Count and log the start of an endpoint's cooldown."""
        self._metrics.count(ENDPOINTS_RESTED, endpoint=endpoint_id)
        self._journal.endpoint_cooled_down(endpoint_id)

    def catalog_rejected(self, what: str, failure: Exception, *, serving: str) -> None:
        """Count and log a catalog that cannot be served."""
        self._metrics.count(CATALOGS_REJECTED)
        self._journal.catalog_rejected(what, failure, serving=serving)

    def unexpected_error(self, error: Exception, request_id: str) -> None:
        """Count and log an unexpected error."""
        self._metrics.count_defect()
        self._journal.unexpected_error(error, request_id)
