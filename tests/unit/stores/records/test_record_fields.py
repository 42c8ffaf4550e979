"""A field of a generation's record is named once, in core/records/generation.py, and forgotten
nowhere.

The stored form follows by itself: the item keeps the whole record as JSON. So does the store in
memory, which keeps the record. What the api shows is written out, in
web/records/generation_shapes.py: a field that is missing there
fails here by its name, unless it is listed as internal. Every test runs with one field of an
ordinary record changed.
"""

from decimal import Decimal
from typing import Any, Final

import pytest
from msgspec import Struct
from msgspec.structs import fields, replace

from tests.cells import cells
from tests.unit.stores.records.test_generations import USUAL
from tollgate.core.limits import CostCeiling
from tollgate.core.prompt_policy import PromptPolicy
from tollgate.core.records.generation import (
    AttemptRecord,
    BillLine,
    GenerationRecord,
    JudgementRecord,
    PromptTokens,
    ReadSize,
    ReusedAnswer,
    RoundsBound,
    RoutingTrace,
    RunRecord,
    ShadowTrace,
)
from tollgate.core.request import RoutingPreferences
from tollgate.core.routing.endpoint_status import Speed
from tollgate.core.usage import Units, Usage
from tollgate.core.work.pictures import Picture
from tollgate.stores.records.generations import read_record, record_item
from tollgate.stores.rules.bills import bill_of
from tollgate.web.records.generation_parts import AttemptObject, BillLineObject, RunObject
from tollgate.web.records.generation_shapes import GenerationObject, TokensObject, TraceObject

_RUN: Final = RunRecord(
    tool="web_search", engine="tavily", round=1, query_hash="0a1b2c3d", duration_ms=7
)
_OTHER_ID: Final = "5g0DOBgUqHItj5y"
# Another value for each field of the record whose type does not say one.
_OTHER_VALUES: Final[dict[str, Any]] = {
    "id": _OTHER_ID,
    "outcome": "error",
    "trace": replace(USUAL.trace, route="other"),
    "finish": "length",
    "usage": Usage(output_tokens=1),
    "usage_source": "estimated",
    "lines": (),
    "attempts": (),
    "raw_usage": None,
    "labels": {"team": "other"},
    "caller_labels": {"session": "other"},
    "adapted": ("seed",),
    "forwarded": ("safeguards",),
    "rounds": (Usage(output_tokens=1), Usage(output_tokens=2)),
    "runs": (_RUN,),
    "judgements": (JudgementRecord(guardrail="secrets", stage="input", verdict="block"),),
    "slices": {"team": 3},
    "shadow": ShadowTrace(
        generation_id=_OTHER_ID,
        route="chat",
        model="a/b",
        cost_nano_usd=1,
        duration_ms=1,
        first_token_ms=1,
        output_tokens=1,
    ),
    "reused": ReusedAnswer(generation_id=_OTHER_ID, saved_nano_usd=5),
}
_OTHER_TRACE_VALUES: Final[dict[str, Any]] = {
    "capabilities": (),
    "kind": "embedding",
    "metadata": {"team": "other"},
    "metadata_read": ("other",),
    "modalities": ("text", "image"),
    "needs": ("suffix",),
    "parameters": ("seed",),
    "prompts": (PromptTokens(estimate=1, most=2),),
    "preferences": RoutingPreferences(only=("other",)),
    "key_models": ("other/*",),
    "level_models": (("acme/*",), ("other/*",)),
    "units": Units(images=1),
    "units_max": Units(images=2),
    "picture": Picture(size="1x1"),
    "documents": ReadSize(types=("application/pdf",), pages=3),
    "rounds": RoundsBound(rounds_max=6, result_tokens=9, fees_nano_usd=10),
    "ceiling": CostCeiling(level="key", id="other", nano_usd=11),
    "prompt_policies": (PromptPolicy(owner="key", regions=("eu",)),),
    "speeds": {"near/n": Speed(latency_ms=1)},
    "sorted_by": "latency",
    "quotas_used_up": ("usd/day=5@acme/*",),
}
# `is_bill` is always set, and what a trace leaves is tested with a store.
_GONE_WITH_THE_RECORD: Final = {
    *("upstream_id", "finish", "raw_finish", "withheld_calls", "held_nano_usd", "shard", "slices"),
    *("judgements", "raw_usage", "client_request_id", "user", "caller_labels"),
    *("api_gateway_request_id", "lambda_request_id", "adapted", "forwarded", "is_bill"),
    "limit_warning",
}
# A caller knows their workspace, and which shard or slice pays is the ledger's own business.
_INTERNAL: Final = {"workspace_id", "shard", "slices"}


def _with_another(value: Any, name: str, others: dict[str, Any]) -> Any:
    """Return a struct with another value in the field `name`."""
    if name in others:
        return replace(value, **{name: others[name]})
    match getattr(value, name):
        case bool(now):
            other: object = not now
        case int(now):
            other = now + 1
        case Decimal() as now:
            other = now + 1
        case str() | None:
            other = 1 if _is_number(value, name) else "other"
        case _:
            raise AssertionError(f"{name}: give another value of it in this file")
    return replace(value, **{name: other})


def _is_number(value: Struct, name: str) -> bool:
    return any(it.name == name and it.type == int | None for it in fields(value))


def _names(kind: type[Struct]) -> list[str]:
    return [field.name for field in fields(kind)]


@cells("name", _names(GenerationRecord))
def test_a_field_of_the_record_is_stored(name: str) -> None:
    changed = _with_another(USUAL, name, _OTHER_VALUES)
    assert changed != USUAL
    assert read_record(record_item(changed, retention_s=1)) == changed


@cells("name", _names(GenerationRecord))
def test_a_field_of_the_record_is_shown_unless_it_is_internal(name: str) -> None:
    changed = _with_another(USUAL, name, _OTHER_VALUES)
    is_shown = GenerationObject.of(changed) != GenerationObject.of(USUAL)
    assert is_shown == (name not in _INTERNAL)


@cells("name", _names(GenerationRecord))
def test_c67_a_field_outlives_its_record_only_if_it_explains_the_cost(name: str) -> None:
    changed = _with_another(USUAL, name, _OTHER_VALUES)
    assert (bill_of(changed) == bill_of(USUAL)) == (name in _GONE_WITH_THE_RECORD)


@cells("name", _names(RoutingTrace))
def test_a_field_of_the_trace_is_shown(name: str) -> None:
    changed = _with_another(USUAL.trace, name, _OTHER_TRACE_VALUES)
    assert TraceObject.model_validate(changed) != TraceObject.model_validate(USUAL.trace)


@pytest.mark.parametrize("name", _names(Usage))
def test_a_class_of_usage_is_shown(name: str) -> None:
    changed = _with_another(USUAL.usage, name, {})
    assert TokensObject.model_validate(changed) != TokensObject.model_validate(USUAL.usage)


@pytest.mark.parametrize("name", _names(BillLine))
def test_a_field_of_a_line_is_shown(name: str) -> None:
    line = USUAL.lines[0]
    changed = _with_another(line, name, {"cost_nano_usd": 1})
    assert BillLineObject.of(changed) != BillLineObject.of(line)


@pytest.mark.parametrize("name", _names(AttemptRecord))
def test_a_field_of_an_attempt_is_shown(name: str) -> None:
    attempt = USUAL.attempts[0]
    changed = _with_another(attempt, name, {})
    assert AttemptObject.of(changed) != AttemptObject.of(attempt)


@pytest.mark.parametrize("name", _names(RunRecord))
def test_a_field_of_a_run_is_shown(name: str) -> None:
    changed = _with_another(_RUN, name, {})
    assert RunObject.of(changed) != RunObject.of(_RUN)
