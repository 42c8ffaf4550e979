"""What is said of prices that differ: of each class, of whom, and when.

Keeps C65.
"""

from datetime import date
from decimal import Decimal
from pathlib import Path

from tollgate.cli.catalog.evidence import gather_evidence
from tollgate.cli.catalog.price_differences import compare_prices
from tollgate.cli.catalog.refresh import render_verdicts
from tollgate.cli.catalog.verdicts import judge_file
from tollgate.routing.file.load import load
from tollgate.routing.price import Price, PriceOverride, PriceSchedule

HERE = Path(__file__).parent
PRICED = HERE.parent / "priced.yaml"
TODAY = date(2026, 11, 21)


def said(today: date) -> str:
    routing = load(PRICED)
    evidence = gather_evidence(routing, today, None, None)
    verdicts = list(judge_file(routing, evidence))
    return "\n".join([*render_verdicts(verdicts, evidence, {}), ""])


def test_it_says_of_each_class_ours_theirs_and_when() -> None:
    assert said(TODAY) == (HERE / "priced.txt").read_text(encoding="utf-8")


def test_a_price_to_come_differs_always_once_its_day_is_there() -> None:
    lines = said(date(2026, 12, 1)).splitlines()
    assert "    input 2, genai-prices 0.2.3 has 4, always" in lines


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
