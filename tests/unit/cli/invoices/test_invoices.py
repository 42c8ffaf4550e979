"""Invoices are read as their publishers document them; these samples are made up, none is real.

Keeps C67.
"""

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tollgate.cli.invoices.files import read_invoices
from tollgate.cli.invoices.lines import InvoiceLine, InvoiceRefused

DAY = "2026-11-02"
# 2026-11-02T00:00:00Z.
START_S = 1_793_577_600


def page(results: list[dict[str, Any]], **bucket: Any) -> dict[str, Any]:
    bucket = bucket or {"start_time": START_S, "end_time": START_S + 86_400}
    return {"data": [{**bucket, "results": results}], "has_more": False}


def line_item(value: Any, name: str | None, currency: str = "usd") -> dict[str, Any]:
    return {
        "object": "organization.costs.result",
        "amount": {"value": value, "currency": currency},
        "line_item": name,
    }


def cents(amount: str, **more: Any) -> dict[str, Any]:
    return {"amount": amount, "currency": "USD", "cost_type": "tokens", **more}


BUCKET = {"starting_at": f"{DAY}T00:00:00Z", "ending_at": "2026-11-03T00:00:00Z"}
USAGE = {
    "uncached_input_tokens": 1_500,
    "cache_creation": {"ephemeral_1h_input_tokens": 1_000, "ephemeral_5m_input_tokens": 500},
    "cache_read_input_tokens": 200,
    "output_tokens": 50,
    "model": "claude-opus-4-7",
}
COMPLETIONS = {
    "object": "organization.usage.completions.result",
    "input_tokens": 1_000,
    "input_cached_tokens": 800,
    "output_tokens": 500,
    "model": "gpt-5.2",
}


def by_usage_type(unit: str = "USD", end: str = "2026-11-03") -> dict[str, Any]:
    group = {
        "Keys": ["USE1-Model-input-tokens"],
        "Metrics": {"UnblendedCost": {"Amount": "0.0015", "Unit": unit}},
    }
    return {"ResultsByTime": [{"TimePeriod": {"Start": DAY, "End": end}, "Groups": [group]}]}


CUR = (
    "line_item_usage_start_date,line_item_line_item_type,line_item_usage_type,"
    "line_item_currency_code,line_item_unblended_cost\n"
    "2026-11-02T05:00:00.000Z,Usage,USE1-Model-input-tokens,USD,0.0010000000\n"
    "2026-11-02T06:00:00.000Z,Usage,USE1-Model-input-tokens,USD,0.0005\n"
    "2026-11-02T06:00:00.000Z,Tax,USE1-Model-input-tokens,USD,9\n"
    "2026-11-02T06:00:00.000Z,Usage,USE1-BoxUsage:t3.micro,EUR,9\n"
)

# Columns of other vendors' tables follow in any order, and Azure writes them in two spellings.
FOCUS = (
    "BilledCost,BillingCurrency,ChargeCategory,ChargePeriodStart,ServiceCategory,{names}\n"
    "0.001,USD,Usage,2026-11-02T05:00:00Z,AI and Machine Learning,{item}\n"
    "0.0005,USD,Usage,2026-11-02T06:00:00Z,AI and Machine Learning,{item}\n"
    "9,USD,Tax,2026-11-02T06:00:00Z,AI and Machine Learning,{item}\n"
    "9,EUR,Usage,2026-11-02T06:00:00Z,Compute,{item}\n"
)
AZURE = (
    "Date,MeterName,{cost},{currency},ChargeType\n"
    "{day},gpt 5.2 Inp glbl Tokens,0.0015,USD,Usage\n"
    "{day},gpt 5.2 Inp glbl Tokens,9,USD,Refund\n"
    "{day},Standard Data Transfer Out,9,EUR,Usage\n"
)


def written(folder: Path, content: object, *, packed: bool = False) -> Path:
    text = content if isinstance(content, str) else json.dumps(content)
    path = folder / "invoice"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("content", "name", "usd", "tokens"),
    [
        (page([line_item(0.06, "gpt-5.2, input")]), "gpt-5.2, input", "0.06", None),
        (page([line_item(0.1, "a"), line_item(0.2, "a")]), "a", "0.3", None),
        (page([COMPLETIONS]), "gpt-5.2", None, (1_000, 500)),
        (
            page([cents("123.45", model="claude-opus-4-7")], **BUCKET),
            "claude-opus-4-7",
            "1.2345",
            None,
        ),
        (
            page([cents("1", model=None, description="Web Search")], **BUCKET),
            "Web Search",
            "0.01",
            None,
        ),
        (page([USAGE], **BUCKET), "claude-opus-4-7", None, (3_200, 50)),
        (by_usage_type(), "USE1-Model-input-tokens", "0.0015", None),
        (CUR, "USE1-Model-input-tokens", "0.0015", None),
        (FOCUS.format(names="SkuMeter", item="USE1-Model"), "USE1-Model", "0.0015", None),
        (FOCUS.format(names="x_UsageType,SkuMeter", item="a,b"), "a", "0.0015", None),
        (
            FOCUS.format(names="SkuMeter,ChargeDescription", item=",Tokens"),
            "Tokens",
            "0.0015",
            None,
        ),
        (
            AZURE.format(
                day="11/02/2026", cost="CostInBillingCurrency", currency="BillingCurrency"
            ),
            "gpt 5.2 Inp glbl Tokens",
            "0.0015",
            None,
        ),
        (
            AZURE.format(day=DAY, cost="costInBillingCurrency", currency="billingCurrency"),
            "gpt 5.2 Inp glbl Tokens",
            "0.0015",
            None,
        ),
    ],
)
def test_c67_each_format_is_read_exactly(
    tmp_path: Path, content: object, name: str, usd: str | None, tokens: Any, packed: bool
) -> None:
    [line] = read_invoices([written(tmp_path, content, packed=packed)]).lines
    inputs, outputs = tokens or (None, None)
    assert line == InvoiceLine(
        day=DAY,
        name=name,
        usd=None if usd is None else Decimal(usd),
        input_tokens=inputs,
        output_tokens=outputs,
    )


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (page([line_item(1, "a")]), "OpenAI costs"),
        (page([USAGE], **BUCKET), "Anthropic usage report"),
        (by_usage_type(), "AWS Cost Explorer"),
        (CUR, "AWS Cost and Usage Report 2.0"),
        (FOCUS.format(names="SkuMeter", item="a"), "FOCUS"),
    ],
)
def test_c67_it_is_told_what_a_file_was_read_as(tmp_path: Path, content: object, kind: str) -> None:
    path = written(tmp_path, content)
    assert read_invoices([path]).kinds == {path: kind}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "match no known table"),
        ("a,b\n1,2\n", "match no known table"),
        ("{", "cannot be read"),
        ("[]", "not a report of a known format"),
        ({"data": []}, None),
        ({"data": [], "has_more": True}, "more pages"),
        ({**by_usage_type(), "NextPageToken": "t"}, "more pages"),
        (page([{"object": "list"}]), "not a report of a known format"),
        (page([line_item(0.06, None)]), "not grouped by line_item"),
        (page([cents("1")], **BUCKET), "not grouped by description"),
        (page([line_item(1, "a", "eur")]), "not in USD"),
        (by_usage_type(unit="EUR"), "not in USD"),
        (CUR.replace("USD,0.0005", "CNY,0.0005"), "not in USD"),
        (page([line_item("NaN", "a")]), "is not an amount"),
        (CUR.replace("0.0005", "free"), "is not an amount"),
        (page([line_item(1, "a")], start_time=START_S, end_time=START_S + 3_600), "by UTC day"),
        (
            page([line_item(1, "a")], start_time=START_S + 3_600, end_time=START_S + 90_000),
            "UTC day",
        ),
        (by_usage_type(end="2026-12-01"), "by day"),
    ],
)
def test_c67_what_is_another_format_is_refused_with_its_reason(
    tmp_path: Path, content: object, reason: str | None
) -> None:
    path = written(tmp_path, content)
    if reason is None:
        assert read_invoices([path]).lines == []
        return
    with pytest.raises(InvoiceRefused, match=reason) as refused:
        read_invoices([path])
    assert str(path) in str(refused.value)
