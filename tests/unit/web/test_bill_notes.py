"""Notes on a bill: what failed, what was saved, and why it cost so much.

Keeps C67.
"""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from tests.unit.ingress.samples import RECORD
from tollgate.core.money.amounts import cost_nano_usd
from tollgate.core.records.generation import (
    AttemptRecord,
    BillLine,
    GenerationRecord,
    JudgementRecord,
    RunRecord,
    total_nano_usd,
)
from tollgate.core.routing.endpoint_status import Speed
from tollgate.core.usage import Usage
from tollgate.web.records.bill_notes import list_notes

REFUSED = AttemptRecord(
    model="openai/gpt-6.1-sol",
    provider="openai",
    error="provider_rate_limit",
    status=429,
    duration_ms=1,
)


def line(item: str, quantity: int, rate: str, round_: int | None = None) -> BillLine:
    cost = cost_nano_usd(quantity, Decimal(rate))
    return BillLine(
        item=item,
        quantity=quantity,
        usd_per_million=Decimal(rate),
        cost_nano_usd=cost,
        round=round_,
    )


def record(*lines: BillLine, **changes: object) -> GenerationRecord:
    plain = replace(
        RECORD,
        attempts=(),
        runs=(),
        rounds=(),
        trace=replace(RECORD.trace, requested_model=RECORD.model or ""),
        usage=Usage(),
        usage_source="provider",
        outcome="ok",
        error=None,
    )
    return replace(plain, lines=lines, cost_nano_usd=total_nano_usd(lines), **changes)


DEAR = record(
    line("input", 13_400, "2"),
    line("cache_read", 61_000, "0.1"),
    line("cache_write_5m", 22_000, "2.5"),
    line("output", 20_212, "10"),
    line("web_search", 2, "10000"),
    usage=Usage(
        uncached_input_tokens=35_400,
        cache_read_input_tokens=61_000,
        output_tokens=20_212,
        reasoning_tokens=16_900,
    ),
)

MASKED = JudgementRecord(
    guardrail="pii", stage="tool_results", verdict="mask", findings=("email", "iban")
)


def earlier(output_tokens: int, count: int = 10) -> list[GenerationRecord]:
    return [record(line("input", 13_400, "2"), line("output", output_tokens, "10"))] * count


def test_c67_a_surprising_cost_is_compared_with_the_median_of_its_key() -> None:
    assert list_notes(DEAR, earlier(3_887)) == [
        "cache saved $0.11590",
        "16,900 of the output tokens are reasoning",
        (
            "why so much: 4.7 × the median of this key's last 10 requests ($0.06567): output "
            "$0.20212 (usually $0.03887), cache write 5m $0.05500 (usually $0); 63 % of the prompt "
            "was cached, 83 % of the output was reasoning"
        ),
    ]


@pytest.mark.parametrize(
    "others",
    [[], earlier(100, count=9), earlier(15_000), earlier(30_000)],
    ids=["none", "few", "about the same", "more"],
)
def test_c67_a_bill_like_the_others_of_its_key_surprises_nobody(
    others: list[GenerationRecord],
) -> None:
    assert "why so much" not in "\n".join(list_notes(DEAR, others))


def test_c67_a_failed_attempt_says_what_its_provider_answered_and_cost_the_operator() -> None:
    words = "insufficient_quota: You exceeded your current quota."
    failed = replace(REFUSED, provider_words=words, operator_cost_nano_usd=450_000)
    trace = replace(RECORD.trace, requested_model="smart", rule=2)
    assert list_notes(record(attempts=(failed,), trace=trace), []) == [
        "requested smart, rule 2",
        (
            "attempt 1 openai/gpt-6.1-sol via openai: 429 provider_rate_limit, $0, $0.00045 paid "
            "by the operator"
        ),
        f"openai answered: {words}",
    ]


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"outcome": "error", "error": "provider_timeout"}, "error: provider_timeout"),
        ({"outcome": "cancelled"}, "cancelled: the client disconnected"),
        (
            {"usage_source": "estimated"},
            "the provider reported no usage; this is an estimate",
        ),
        (
            {"usage_source": "bounded"},
            "the provider reported more usage than the answer can have; the upper bound is billed",
        ),
        (
            {"withheld_calls": 2},
            "2 tool calls were billed but not delivered: the caller allowed only one",
        ),
        (
            {"judgements": (MASKED, replace(MASKED, stage="output", verdict="pass"))},
            "guardrail pii: mask on tool results: email, iban",
        ),
    ],
    ids=lambda it: str(it)[:20],
)
def test_c67_what_is_unusual_is_noted(changes: dict[str, object], note: str) -> None:
    assert list_notes(record(**changes), []) == [note]


def test_c67_a_search_of_the_provider_without_a_price_is_noted() -> None:
    [note] = list_notes(record(line("unpriced_web_search", 3, "0")), [])
    assert note == "the provider searched the web, but the catalog has no price for searches"


def test_c73_each_run_of_a_tool_and_the_later_rounds_are_noted() -> None:
    run = RunRecord(
        tool="web_search",
        engine="tavily",
        round=1,
        query_hash="0",
        began_ms=0,
        duration_ms=1_234,
        cost_nano_usd=0,
    )
    limited = replace(run, engine="", duration_ms=0, error="max_uses_exceeded")
    dear = record(
        line("input", 100, "2", 1),
        line("input", 200, "2", 2),
        rounds=(Usage(), Usage()),
        runs=(run, limited),
    )
    cheap = [record(line("input", 10, "2"))] * 10
    assert list_notes(dear, cheap) == [
        "2 rounds; each line begins with the number of its round",
        "round 1 ran web_search by tavily, 1.2 s",
        "round 1 ran web_search, 0.0 s: max_uses_exceeded",
        (
            "why so much: 30.0 × the median of this key's last 10 requests ($0.00002): fresh input "
            "$0.00060 (usually $0.00002); 66 % was spent after the first of 2 rounds with tools"
        ),
    ]


@pytest.mark.parametrize(
    ("measure", "figure"),
    [("latency", "900 ms"), ("throughput", "26.7 tokens/s"), ("price", "40% cached")],
)
def test_c107_the_measurements_that_sorted_the_endpoints_are_noted(
    measure: str, figure: str
) -> None:
    speed = Speed(latency_ms=900, tokens_per_s=26.66, cached_share=0.4, answers=20)
    trace = replace(DEAR.trace, sorted_by=measure, speeds={"near/n": speed}, explored="far/L")
    assert list_notes(replace(DEAR, trace=trace), ())[:2] == [
        f"endpoints sorted by {measure}: near/n {figure} (20 answers)",
        "far/L came first because its figures were old or few",
    ]


def test_c107_the_rules_that_chose_the_models_are_noted() -> None:
    trace = replace(
        DEAR.trace,
        route="smart",
        rule=1,
        bent=True,
        budget_left_percent=15,
        quotas_used_up=("usd/day=5@acme/*",),
        is_candidate=True,
        probe="near/n",
    )
    assert list_notes(replace(DEAR, trace=trace, limit_warning="day 85%"), ())[:5] == [
        "a candidate catalog served this key",
        "bent by the budget: smart rule 1; 15% left",
        "the quota usd/day=5@acme/* was used up, so its models were left out",
        "near/n came first to probe it after its cooldown",
        "the reply warned of a limit: day 85% used",
    ]
