"""Metrics inside log lines, held to the embedded metric format's own rules."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests.clocks import FixedClock
from tests.unit.ingress.samples import record
from tollgate.core.records.generation import AttemptRecord
from tollgate.observability.emf import EmbeddedMetrics
from tollgate.observability.log import JsonFormatter, LogJournal

JOURNAL = LogJournal(EmbeddedMetrics("Tollgate/test", FixedClock()))
SERVED = AttemptRecord(
    model="test/echo", provider="simulator", error=None, status=None, duration_ms=7
)
FAILED = AttemptRecord(
    model="acme/large", provider="near", error="provider_rate_limit", status=429, duration_ms=3
)


@pytest.fixture
def lines() -> Iterator[list[dict[str, Any]]]:
    """What the journal writes from now on."""
    written: list[dict[str, Any]] = []

    class Kept(logging.Handler):
        def emit(self, told: logging.LogRecord) -> None:
            written.append(json.loads(JsonFormatter().format(told)))

    logger, handler = logging.getLogger("tollgate"), Kept()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield written
    logger.removeHandler(handler)
    logger.setLevel(level)


def published(line: dict[str, Any]) -> dict[tuple[str, ...], dict[str, float]]:
    """What CloudWatch makes of a line, by dimension values (its specification, 2026-11-21).

    It refuses what breaks the rules: then there are no metrics, and nobody is told.
    """
    assert line["_aws"].keys() == {"Timestamp", "CloudWatchMetrics"}
    assert isinstance(line["_aws"]["Timestamp"], int)
    found: dict[tuple[str, ...], dict[str, float]] = {}
    for directive in line["_aws"]["CloudWatchMetrics"]:
        assert directive.keys() == {"Namespace", "Dimensions", "Metrics"}
        assert 1 <= len(directive["Namespace"]) <= 1024
        assert len(directive["Metrics"]) <= 100
        for dimensions in directive["Dimensions"]:
            assert len(dimensions) <= 30
            values = tuple(line[name] for name in dimensions)
            assert all(isinstance(it, str) and 1 <= len(it) <= 1024 for it in values)
            metrics = found.setdefault(values, {})
            for metric in directive["Metrics"]:
                assert metric["Unit"] in {"Count", "Milliseconds", "None"}
                value = line[metric["Name"]]
                assert isinstance(value, int | float)
                metrics[metric["Name"]] = value
    return found


def test_c65_usage_that_was_bounded_is_counted_by_provider(lines: list[dict[str, Any]]) -> None:
    JOURNAL.settled(record(usage_source="bounded"))
    _, line = lines
    assert (line["level"], line["provider"]) == ("WARNING", "simulator")
    assert published(line) == {
        ("chat",): {"UsageBounded": 1},
        ("chat", "simulator"): {"UsageBounded": 1},
    }


def test_a_generation_counts_for_all_and_for_its_provider(lines: list[dict[str, Any]]) -> None:
    JOURNAL.settled(record(attempts=(SERVED,), duration_ms=70, first_token_ms=20))
    [line] = lines
    assert published(line) == {
        ("chat",): {
            "Generations": 1,
            "Errors": 0,
            "ProvidersFailed": 0,
            "Fallbacks": 0,
            "CostNanoUsd": 1_234_567_891,
            "Duration": 70,
            "FirstToken": 20,
        },
        ("chat", "simulator"): {
            "Generations": 1,
            "Errors": 0,
            "CostNanoUsd": 1_234_567_891,
            "Duration": 70,
            "FirstToken": 20,
        },
    }


def test_what_nobody_served_has_no_first_token_and_no_provider(
    lines: list[dict[str, Any]],
) -> None:
    JOURNAL.settled(
        record(model=None, provider=None, outcome="error", error="provider_timeout", attempts=())
    )
    [line] = lines
    [(dimensions, metrics)] = published(line).items()
    assert dimensions == ("chat",)
    assert (metrics["Errors"], metrics["ProvidersFailed"]) == (1, 1)
    assert "FirstToken" not in metrics


def test_a_failed_attempt_counts_by_provider_and_code(lines: list[dict[str, Any]]) -> None:
    JOURNAL.settled(record(attempts=(FAILED, SERVED)))
    generation, attempt = lines
    assert published(generation)[("chat",)]["Fallbacks"] == 1
    assert published(attempt) == {("chat", "near", "provider_rate_limit"): {"AttemptsFailed": 1}}
    assert (attempt["message"], attempt["status"]) == ("attempt failed", 429)


def test_what_is_not_settled_and_what_rests_are_counted(lines: list[dict[str, Any]]) -> None:
    JOURNAL.unsettled(record(), TimeoutError())
    JOURNAL.endpoint_cooled_down("near/large-1")
    JOURNAL.catalog_rejected("catalog f00 cannot be served", TimeoutError(), serving="ba5e")
    assert [published(line) for line in lines] == [
        {("chat",): {"Unsettled": 1}},
        {("chat",): {"EndpointsRested": 1}},
        {("chat",): {"CatalogsKeptBack": 1}},
    ]
    assert lines[1]["endpoint"] == "near/large-1"
    assert (lines[2]["reason"], lines[2]["serving"]) == ("TimeoutError", "ba5e")


def test_no_key_workspace_or_model_is_a_dimension(lines: list[dict[str, Any]]) -> None:
    JOURNAL.settled(record(attempts=(FAILED, SERVED)))
    named = {
        name
        for line in lines
        for directive in line["_aws"]["CloudWatchMetrics"]
        for dimensions in directive["Dimensions"]
        for name in dimensions
    }
    assert named == {"service", "provider", "error"}
