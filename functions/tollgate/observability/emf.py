"""Metrics in log lines, in CloudWatch's embedded metric format.

"Specification: Embedded metric format", Amazon CloudWatch user guide, 2026-11-21. CloudWatch bills
each combination of dimension values as a metric, so neither keys nor models are dimensions.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from tollgate.core.clock import Clock
from tollgate.core.json_value import JsonValue
from tollgate.core.records.generation import GenerationRecord

SERVICE: Final = "chat"
_OF_ALL: Final = ("service",)
_BY_PROVIDER: Final = ("service", "provider")
_BY_FAILURE: Final = ("service", "provider", "error")
_BY_VERDICT: Final = ("service", "guardrail", "verdict")


class Metric(Struct, frozen=True):
    """A metric, whose name is also the name of the log field with the value."""

    name: str
    unit: Literal["Count", "Milliseconds", "None"]


GENERATIONS: Final = Metric("Generations", "Count")
ERRORS: Final = Metric("Errors", "Count")
PROVIDERS_FAILED: Final = Metric("ProvidersFailed", "Count")
FALLBACKS: Final = Metric("Fallbacks", "Count")
COST: Final = Metric("CostNanoUsd", "None")
DURATION: Final = Metric("Duration", "Milliseconds")
FIRST_TOKEN: Final = Metric("FirstToken", "Milliseconds")
ATTEMPTS_FAILED: Final = Metric("AttemptsFailed", "Count")
USAGE_BOUNDED: Final = Metric("UsageBounded", "Count")
GUARDRAIL_JUDGEMENTS: Final = Metric("GuardrailJudgements", "Count")
UNSETTLED: Final = Metric("Unsettled", "Count")
ENDPOINTS_RESTED: Final = Metric("EndpointsRested", "Count")
CATALOGS_REJECTED: Final = Metric("CatalogsKeptBack", "Count")

# Metrics of generations that are also published for each provider.
_OF_PROVIDERS: Final = frozenset({GENERATIONS, ERRORS, COST, DURATION, FIRST_TOKEN})
# Metrics that count only the generations to which a rule of routing.yaml or of a key applied.
OF_RULES: Final[Mapping[Metric, Callable[[GenerationRecord], bool]]] = {
    Metric("AnswersReused", "Count"): lambda record: record.reused is not None,
    Metric("Shadows", "Count"): lambda record: record.shadow is not None,
    Metric("EndpointsProbed", "Count"): lambda record: record.trace.probe is not None,
    Metric("EndpointsSorted", "Count"): lambda record: record.trace.sorted_by is not None,
    Metric("BudgetsBent", "Count"): lambda record: record.trace.bent,
    Metric("QuotasUsedUp", "Count"): lambda record: bool(record.trace.quotas_used_up),
    Metric("LimitsWarned", "Count"): lambda record: record.limit_warning is not None,
    Metric("PromptsRestricted", "Count"): lambda record: bool(record.trace.every_policy),
    Metric("CandidatesServed", "Count"): lambda record: record.trace.is_candidate,
}


def measure(record: GenerationRecord) -> Mapping[Metric, int]:
    """Return the values of a generation's metrics."""
    values = {
        GENERATIONS: 1,
        ERRORS: int(record.outcome == "error"),
        PROVIDERS_FAILED: int((record.error or "").startswith("provider_")),
        FALLBACKS: int(_fell_back(record)),
        COST: record.cost_nano_usd,
        DURATION: record.duration_ms,
    }
    if record.first_token_ms is not None:
        values[FIRST_TOKEN] = record.first_token_ms
    values.update((metric, 1) for metric, applies in OF_RULES.items() if applies(record))
    return values


class EmbeddedMetrics:
    """Builds the fields that turn a log line into metrics of one namespace."""

    def __init__(self, namespace: str, clock: Clock) -> None:
        self._namespace = namespace
        self._clock = clock
        self._of_generations: dict[tuple[tuple[Metric, ...], bool], list[JsonValue]] = {}
        """Cached directives for generations, by the metrics, and whether a provider served."""

    def measure_generation(self, record: GenerationRecord) -> Mapping[str, JsonValue]:
        """Return the log fields with a generation's metrics, in total and for its provider."""
        values = measure(record)
        form = (tuple(values), record.provider is not None)
        directives = self._of_generations.get(form)
        if directives is None:
            directives = [self._directive(values, _OF_ALL)]
            if record.provider is not None:
                by_provider = [metric for metric in values if metric in _OF_PROVIDERS]
                directives.append(self._directive(by_provider, _BY_PROVIDER))
            self._of_generations[form] = directives
        return self._fields(values, directives)

    def count_failed_attempt(self) -> Mapping[str, JsonValue]:
        """Return the log fields that count a failed attempt; the caller adds the dimensions."""
        return self._fields({ATTEMPTS_FAILED: 1}, [self._directive([ATTEMPTS_FAILED], _BY_FAILURE)])

    def count_judgements(self, pieces: int) -> Mapping[str, JsonValue]:
        """Return the log fields that count judgements; the caller adds the dimensions."""
        directive = self._directive([GUARDRAIL_JUDGEMENTS], _BY_VERDICT)
        return self._fields({GUARDRAIL_JUDGEMENTS: pieces}, [directive])

    def count_bounded_usage(self) -> Mapping[str, JsonValue]:
        """Return the log fields that count a bill at its bound; the caller adds `provider`."""
        by_each = [self._directive([USAGE_BOUNDED], by) for by in (_OF_ALL, _BY_PROVIDER)]
        return self._fields({USAGE_BOUNDED: 1}, by_each)

    def count(self, metric: Metric) -> Mapping[str, JsonValue]:
        """Return the log fields that add one to a metric."""
        return self._fields({metric: 1}, [self._directive([metric], _OF_ALL)])

    def _directive(
        self, metrics: Sequence[Metric] | Mapping[Metric, int], dimensions: Sequence[str]
    ) -> JsonValue:
        return {
            "Namespace": self._namespace,
            "Dimensions": [list(dimensions)],
            "Metrics": [{"Name": metric.name, "Unit": metric.unit} for metric in metrics],
        }

    def _fields(
        self, values: Mapping[Metric, int], directives: list[JsonValue]
    ) -> Mapping[str, JsonValue]:
        return {
            "service": SERVICE,
            **{metric.name: value for metric, value in values.items()},
            "_aws": {
                "Timestamp": int(self._clock.now_s() * 1000),
                "CloudWatchMetrics": directives,
            },
        }


def _fell_back(record: GenerationRecord) -> bool:
    """Return True if an endpoint other than the first attempted one served the generation."""
    first = record.attempts[0] if record.attempts else None
    served = (record.model, record.provider)
    return (
        first is not None and record.model is not None and served != (first.model, first.provider)
    )
