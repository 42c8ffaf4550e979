"""A bill as a person reads it."""

from typing import Any

from tollgate.cli.gateway.bill import explain_bill

SURPRISE = "why so much: 4.7 × the median of this key's last 10 requests ($0.06567)"


def line(item: str, quantity: int, rate: str, cost: str) -> dict[str, Any]:
    return {"item": item, "quantity": quantity, "usd_per_million": rate, "cost": cost}


def record(**changes: Any) -> dict[str, Any]:
    return {
        "total_cost": "0.31002",
        "model": "anthropic/claude-sonnet-5.5",
        "provider_name": "anthropic",
        "key_name": "team-search",
        "key_id": "k1",
        "created_at": "2026-11-21T14:02:11Z",
        "first_token_ms": 1900,
        "latency_ms": 41300,
        "catalog_sha": "41be77a0c0ffee",
        "refunded": 0,
        "labels": {"member": "ana@acme.example", "team": "search"},
        "notes": [
            "requested smart, rule 2",
            f"{SURPRISE}: output $0.20212 (usually $0.03887)",
        ],
        "cost_lines": [
            line("input", 13_400, "2", "0.0268"),
            line("cache_read", 61_000, "0.1", "0.0061"),
            line("cache_write_5m", 22_000, "2.5", "0.055"),
            line("output", 20_212, "10", "0.20212"),
            line("web_search", 2, "10000", "0.02"),
        ],
        **changes,
    }


def test_a_bill_says_what_each_line_cost_and_fits_100_columns() -> None:
    told = explain_bill(record(refunded="0.1"))
    assert "\n".join(told) == (
        "$0.31002  anthropic/claude-sonnet-5.5 via anthropic\n"
        "  key team-search  2026-11-21T14:02:11Z  TTFT 1.9 s, 41.3 s  catalog 41be77a\n"
        "  member ana@acme.example, team search\n"
        "  fresh input      13,400 × $2.00/M   0.026800000\n"
        "  cache read       61,000 × $0.10/M   0.006100000\n"
        "  cache write 5m   22,000 × $2.50/M   0.055000000\n"
        "  output          20,212 × $10.00/M   0.202120000\n"
        "  web_search          2 × $10.00/1k   0.020000000\n"
        "  refunded $0.10000, which leaves $0.21002\n"
        "  requested smart, rule 2\n"
        f"  {SURPRISE}: output $0.20212 (usually\n"
        "    $0.03887)"
    )
    assert max(map(len, told)) <= 100


def test_a_bill_of_nothing_says_what_went_wrong() -> None:
    broken = record(total_cost="0", model=None, cost_lines=[], notes=["error: provider_timeout"])
    assert explain_bill(broken)[0] == "$0  not served"
    assert explain_bill(broken)[-1] == "  error: provider_timeout"


def test_a_bill_ends_with_the_ids_of_the_platforms_where_there_are_any() -> None:
    ids = {"api_gateway_request_id": "41b45ea3", "lambda_request_id": "8476a536"}
    shown = explain_bill(record(**ids))
    assert shown[-2:] == ["  API Gateway request 41b45ea3", "  Lambda request 8476a536"]
    assert explain_bill(record(**dict.fromkeys(ids))) == shown[:-2]


def test_a_bill_rounds_neither_its_total_nor_its_rates() -> None:
    lines = [line("cache_read", 13_400, "0.075", "0.001005"), line("request", 1, "3", "0.000003")]
    head, _, _, *rows = explain_bill(record(total_cost="0.001008", cost_lines=lines))
    assert head.startswith("$0.001008  ")
    assert rows[0] == "  cache read  13,400 × $0.075/M   0.001005000"
    assert "1 × $0.003/1k   0.000003000" in rows[1]
    assert explain_bill(record(total_cost="1234.5"))[0].startswith("$1,234.50000  ")


def test_c73_a_bill_of_rounds_numbers_its_lines() -> None:
    lines = [
        line("input", 100, "2", "0.0002") | {"round": 1},
        line("web_search", 1, "8000", "0.008") | {"round": 1},
        line("cache_read", 1_000_000, "1", "1") | {"round": 2},
    ]
    assert explain_bill(record(cost_lines=lines, notes=None, labels={}))[2:] == [
        "  1 fresh input        100 × $2.00/M   0.000200000",
        "  1 web_search           1 × $8.00/1k   0.008000000".replace("   1 ×", "  1 ×"),
        "  2 cache read   1,000,000 × $1.00/M   1.000000000",
    ]
