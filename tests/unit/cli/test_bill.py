"""A bill as a person reads it."""

from decimal import Decimal
from typing import Any

import pytest

from tollgate.cli.gateway.bill import explain_bill


def line(item: str, quantity: int, rate: str, cost: str) -> dict[str, Any]:
    return {"item": item, "quantity": quantity, "usd_per_million": rate, "cost": cost}


def record(**changes: Any) -> dict[str, Any]:
    return {
        "total_cost": "0.31002",
        "model": "anthropic/claude-sonnet-5.5",
        "requested_model": "smart",
        "provider_name": "anthropic",
        "key_name": "team-search",
        "key_id": "k1",
        "created_at": "2026-11-21T14:02:11Z",
        "first_token_ms": 1900,
        "latency_ms": 41300,
        "catalog_sha": "41be77a0c0ffee",
        "rule": 2,
        "provider_responses": [
            {
                "model": "openai/gpt-6.1-sol",
                "provider_name": "openai",
                "status": 429,
                "error": "provider_rate_limit",
                "operator_cost": "0",
                "provider_words": "",
            },
            {
                "model": "anthropic/claude-sonnet-5.5",
                "provider_name": "anthropic",
                "status": 200,
                "error": None,
                "operator_cost": "0",
                "provider_words": "",
            },
        ],
        "status": "ok",
        "error_code": None,
        "tokens_prompt": 96_400,
        "tokens_cached_prompt": 61_000,
        "tokens_completion": 20_212,
        "tokens_reasoning": 16_900,
        "usage_source": "provider",
        "cost_lines": [
            line("input", 13_400, "2", "0.0268"),
            line("cache_read", 61_000, "0.1", "0.0061"),
            line("cache_write_5m", 22_000, "2.5", "0.055"),
            line("output", 20_212, "10", "0.20212"),
            line("web_search", 2, "10000", "0.02"),
        ],
        **changes,
    }


def earlier(output_tokens: int, cost: str, count: int = 10) -> list[dict[str, Any]]:
    lines = [line("output", output_tokens, "10", cost), line("input", 13_400, "2", "0.0268")]
    return [{"cost_lines": lines, "total_cost": f"{Decimal(cost) + Decimal('0.0268')}"}] * count


def test_a_bill_says_what_each_line_cost_and_why_it_is_so_much() -> None:
    told = explain_bill(record(refunded="0.1"), earlier(3_887, "0.03887"))
    assert "\n".join(told) == (
        "$0.31002  anthropic/claude-sonnet-5.5 via anthropic\n"
        "  key team-search  2026-11-21T14:02:11Z  TTFT 1.9 s, 41.3 s  catalog 41be77a\n"
        "  fresh input      13,400 × $2.00/M   0.026800000\n"
        "  cache read       61,000 × $0.10/M   0.006100000\n"
        "  cache write 5m   22,000 × $2.50/M   0.055000000\n"
        "  output          20,212 × $10.00/M   0.202120000\n"
        "  web_search          2 × $10.00/1k   0.020000000\n"
        "  refunded $0.10000, which leaves $0.21002\n"
        "  requested smart, rule 2\n"
        "  attempt 1 openai/gpt-6.1-sol via openai: 429 provider_rate_limit, $0\n"
        "  cache saved $0.11590\n"
        "  16,900 of the output tokens are reasoning\n"
        "  why so much: 4.7 × the median of this key's last 10 requests ($0.06567): "
        "output $0.20212 (usually\n"
        "    $0.03887), cache write 5m $0.05500 (usually $0); 63 % of the prompt was cached, "
        "83 % of the\n"
        "    output was reasoning"
    )
    assert max(map(len, told)) <= 100


@pytest.mark.parametrize(
    "others",
    [[], earlier(100, "0.001", count=9), earlier(15_000, "0.15"), earlier(30_000, "0.3")],
    ids=["none", "few", "about the same", "more"],
)
def test_a_bill_like_the_others_of_its_key_surprises_nobody(others: list[Any]) -> None:
    assert "why so much" not in "\n".join(explain_bill(record(), others))


def test_a_bill_of_nothing_says_what_went_wrong() -> None:
    broken = record(
        total_cost="0", model=None, status="error", error_code="provider_timeout", cost_lines=[]
    )
    head, *notes = explain_bill(broken, [])
    assert head == "$0  nobody"
    assert notes[-2].strip() == "error: provider_timeout"


def test_a_failed_attempt_says_what_its_provider_answered() -> None:
    refused, served = record()["provider_responses"]
    words = "insufficient_quota: You exceeded your current quota."
    told = explain_bill(
        record(provider_responses=[{**refused, "provider_words": words}, served]), []
    )
    assert f"openai answered: {words}" in "\n".join(told)


def test_a_failed_attempt_says_what_it_cost_the_operator() -> None:
    refused, served = record()["provider_responses"]
    told = explain_bill(
        record(provider_responses=[{**refused, "operator_cost": "0.00045"}, served]), []
    )
    said = " ".join(text.strip() for text in told)
    assert "429 provider_rate_limit, $0, $0.00045 paid by the operator" in said


def test_a_search_of_the_provider_that_has_no_price_is_said_to_have_none() -> None:
    lines = [line("output", 1, "10", "0.00001"), line("unpriced_web_search", 3, "0", "0")]
    said = explain_bill(record(cost_lines=lines), [])
    assert said[3].split()[:4] == ["provider", "search", "3", "×"]
    assert "the catalog has no price for searches" in "\n".join(said)
    assert "no price" not in "\n".join(explain_bill(record(), []))


def test_a_bill_ends_with_the_ids_of_the_platforms_where_there_are_any() -> None:
    ids = {"api_gateway_request_id": "41b45ea3", "lambda_request_id": "8476a536"}
    shown = explain_bill(record(**ids), [])
    assert shown[-2:] == ["  API Gateway request 41b45ea3", "  Lambda request 8476a536"]
    assert explain_bill(record(**dict.fromkeys(ids)), []) == shown[:-2]


def test_an_estimate_says_that_it_is_one() -> None:
    assert "estimate" in explain_bill(record(usage_source="estimated"), [])[-1]


def test_a_bill_at_its_bound_says_so() -> None:
    assert "the upper bound is billed" in explain_bill(record(usage_source="bounded"), [])[-1]


def test_a_bill_rounds_neither_its_total_nor_its_rates() -> None:
    lines = [line("cache_read", 13_400, "0.075", "0.001005"), line("request", 1, "3", "0.000003")]
    head, _, *rows = explain_bill(record(total_cost="0.001008", cost_lines=lines), [])
    assert head.startswith("$0.001008  ")
    assert rows[0] == "  cache read  13,400 × $0.075/M   0.001005000"
    assert "1 × $0.003/1k   0.000003000" in rows[1]
    assert explain_bill(record(total_cost="1234.5"), [])[0].startswith("$1,234.50000  ")


def test_c73_a_bill_of_rounds_numbers_its_lines_and_names_the_runs() -> None:
    run = {"tool": "web_search", "round": 1, "latency": 1_234, "error": None}
    shown = record(
        requested_model="m",
        model="m",
        tokens_reasoning=None,
        provider_responses=[],
        cost_lines=[
            line("input", 100, "2", "0.0002") | {"round": 1},
            line("web_search", 1, "8000", "0.008") | {"round": 1},
            line("input", 200, "2", "0.0004") | {"round": 2},
            line("cache_read", 1_000_000, "1", "1") | {"round": 2},
            line("output", 20, "10", "0.0002") | {"round": 2},
        ],
        rounds=[{}, {}],
        server_tool_runs=[
            run | {"engine": "tavily"},
            run | {"engine": "", "latency": 0, "error": "max_uses_exceeded"},
        ],
    )

    assert "\n".join(explain_bill(shown, [])[2:]) == (
        "  1 fresh input        100 × $2.00/M   0.000200000\n"
        "  1 web_search          1 × $8.00/1k   0.008000000\n"
        "  2 fresh input        200 × $2.00/M   0.000400000\n"
        "  2 cache read   1,000,000 × $1.00/M   1.000000000\n"
        "  2 output             20 × $10.00/M   0.000200000\n"
        "  2 rounds; each line begins with the number of its round\n"
        "  round 1 ran web_search by tavily, 1.2 s\n"
        "  round 1 ran web_search, 0.0 s: max_uses_exceeded\n"
        "  cache saved $1.00000"
    )
