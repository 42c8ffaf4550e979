"""`tollgate prices diff`: what it says, of whom, and with which exit status.

Keeps C65.
"""

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tollgate.cli.main import main
from tollgate.cli.routing.price_differences import compare_prices
from tollgate.cli.routing.price_report import list_findings, render_report
from tollgate.routing.file.load import load
from tollgate.routing.price import Price, PriceOverride, PriceSchedule

HERE = Path(__file__).parent
PRICED = HERE / "priced.yaml"
SHIPPED = HERE.parents[2] / "routing.yaml"
TODAY = date(2026, 11, 21)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["prices", "diff", *map(str, arguments)])


def said(today: date) -> str:
    routing = load(PRICED)
    offers = [(slug, it) for slug, model in routing.models.items() for it in model.endpoints]
    return "\n".join([*render_report(list(list_findings(routing, offers, today)), len(offers)), ""])


def test_it_says_of_each_class_ours_theirs_when_source_and_day() -> None:
    assert said(TODAY) == (HERE / "priced.txt").read_text(encoding="utf-8")


def test_a_price_to_come_differs_always_once_its_day_is_there() -> None:
    lines = said(date(2026, 12, 1)).splitlines()
    assert "    input 2, published 4, always" in lines


def test_prices_of_weekdays_differ_on_those_days_only() -> None:
    flat = Price(input=Decimal(1), output=Decimal(2))
    peak = PriceOverride(
        rates={"input": Decimal(3)}, utc_minutes=(1_380, 60), utc_weekdays=frozenset({4})
    )
    found = compare_prices(
        PriceSchedule(base=flat, overrides=(peak,)), PriceSchedule(base=flat), TODAY
    )
    assert [(it.rate, it.ours, it.theirs, it.when) for it in found] == [
        ("input", 3, 1, "on fri, 23:00-00:00 UTC; on sat, 00:00-01:00 UTC")
    ]


def test_a_file_that_differs_has_exit_status_one_and_one_that_does_not_zero() -> None:
    assert run(PRICED).exit_code == 1
    agrees = run(SHIPPED, "--provider", "mistral", "--model", "mistralai/mistral-small-2603")
    assert (agrees.exit_code, agrees.output) == (
        0,
        "1 prices compared with genai-prices 0.2.3: 0 differ, 0 unknown\n",
    )


def test_what_is_unknown_is_listed_and_is_no_difference() -> None:
    result = run(PRICED, "--model", "openai/gpt-99", "--json")
    assert result.exit_code == 0
    assert json.loads(result.output) == [
        {
            "model": "openai/gpt-99",
            "provider": "openai",
            "kind": "unknown",
            "stated": "a page, 2026-11-20",
            "published": "OpenAI has no price for gpt-99",
        },
        {
            "model": "openai/gpt-99",
            "provider": "ours",
            "kind": "unknown",
            "stated": "our own accounts, 2026-11-20",
            "published": "prices of this provider are not published",
        },
    ]


def test_it_changes_nothing() -> None:
    before = PRICED.read_bytes()
    run(PRICED)
    assert PRICED.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((PRICED, "--provider", "nobody"), "no endpoint of the file is of that model and provider"),
        ((PRICED, "--model", "a/b"), "no endpoint of the file is of that model and provider"),
        (("nowhere.yaml",), "nowhere.yaml must not be used"),
    ],
)
def test_bad_input_is_said_and_is_no_traceback(
    arguments: tuple[str | Path, ...], words: str
) -> None:
    result = run(*arguments)
    assert result.exit_code in (1, 2)
    assert words in result.output
    assert isinstance(result.exception, SystemExit)
