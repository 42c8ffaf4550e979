"""Sums of generations by day, model, provider and key.

Keeps C67.
"""

from msgspec.structs import replace

from tests.unit.ingress.samples import RECORD
from tollgate.core.records.activity import summarize_day
from tollgate.core.records.generation import AttemptRecord


def test_c67_a_failure_is_counted_for_the_model_that_was_tried_first() -> None:
    attempts = tuple(
        AttemptRecord(
            model=model, provider="acme", error="provider_timeout", status=None, duration_ms=1
        )
        for model in ("acme/large", "acme/small")
    )
    failed = replace(RECORD, outcome="error", model=None, provider=None, cost_nano_usd=0)
    tried = replace(failed, attempts=attempts)
    uncalled = replace(failed, attempts=(), id=f"{RECORD.id[:-1]}0")
    rows = summarize_day("2026-11-21", [tried, uncalled])
    assert [(row.model, row.provider, row.failed) for row in rows] == [
        (None, None, 1),
        ("acme/large", None, 1),
    ]
