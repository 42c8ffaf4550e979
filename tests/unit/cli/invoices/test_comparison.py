"""An invoice beside our records: names, tolerance, what only one of them has.

Keeps C67.
"""

from decimal import Decimal
from typing import Any

import pytest

from tollgate.cli.invoices.comparison import BilledModel, Compared, compare
from tollgate.cli.invoices.lines import InvoiceLine

DAY = "2026-11-02"
MODELS = [
    BilledModel(slug="openai/gpt-5", upstream="gpt-5"),
    BilledModel(slug="openai/gpt-5-mini", upstream="gpt-5-mini"),
    BilledModel(slug="amazon/nova", upstream="amazon.nova", billed_as=("*-Nova-*",)),
]


def row(model: str, usd: str, *, day: str = DAY, failed: int = 0) -> dict[str, Any]:
    return {
        "date": day,
        "model": model,
        "usage": Decimal(usd),
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "failed": failed,
    }


def billed(name: str, usd: str | None, tokens: int | None = None) -> InvoiceLine:
    return InvoiceLine(
        day=DAY, name=name, usd=None if usd is None else Decimal(usd), input_tokens=tokens
    )


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("gpt-5", "openai/gpt-5"),
        ("gpt-5-2025-08-07", "openai/gpt-5"),
        ("gpt-5-20250807, input", "openai/gpt-5"),
        ("gpt-5, cached input", "openai/gpt-5"),
        ("gpt-5-mini, output", "openai/gpt-5-mini"),
        ("gpt-5-nano, output", None),
        ("gpt-50", None),
        ("USE1-Nova-input-tokens", "amazon/nova"),
        ("amazon.nova", None),
    ],
)
def test_c67_a_line_belongs_to_the_model_that_its_name_states(name: str, slug: str | None) -> None:
    [found] = compare([billed(name, "1")], [], MODELS)
    assert (found.model, found.is_known) == (slug or name, slug is not None)


def test_c67_lines_and_rows_of_one_model_and_day_are_summed() -> None:
    invoice = [billed("gpt-5, input", "1"), billed("gpt-5, output", "2"), billed("gpt-5", None, 20)]
    rows = [row("openai/gpt-5", "1.5"), row("openai/gpt-5", "1.5", failed=2)]
    [found] = compare(invoice, rows, MODELS)
    assert found == Compared(
        day=DAY,
        model="openai/gpt-5",
        invoiced_usd=Decimal(3),
        invoiced_tokens=20,
        recorded_usd=Decimal(3),
        recorded_tokens=30,
        failed=2,
    )


def test_c67_what_only_one_side_has_is_shown_and_differs() -> None:
    found = compare([billed("gpt-5", "1")], [row("openai/gpt-5-mini", "2")], MODELS)
    assert [(it.invoiced_usd, it.recorded_usd) for it in found] == [(1, 0), (0, 2)]
    assert all(it.differs(Decimal(1), Decimal("0.01")) for it in found)


@pytest.mark.parametrize(
    ("invoiced", "recorded", "differs"),
    [
        ("100", "100", False),
        ("101", "100", False),
        ("101.2", "100", True),
        ("98.8", "100", True),
        # Beyond the percentage, yet less than a cent.
        ("0.009", "0.001", False),
        ("0.02", "0.001", True),
        ("0", "0.5", True),
        ("0", "0", False),
    ],
)
def test_c67_a_difference_passes_both_bounds(invoiced: str, recorded: str, differs: bool) -> None:
    it = Compared(
        day=DAY, model="a", invoiced_usd=Decimal(invoiced), recorded_usd=Decimal(recorded)
    )
    assert it.differs(Decimal(1), Decimal("0.01")) is differs


def test_c67_an_invoice_of_tokens_alone_is_compared_by_tokens() -> None:
    [same] = compare([billed("gpt-5", None, 15)], [row("openai/gpt-5", "1")], MODELS)
    [other] = compare([billed("gpt-5", None, 16)], [row("openai/gpt-5", "1")], MODELS)
    assert (same.invoiced_usd, same.differs(Decimal(1), Decimal(0))) == (None, False)
    assert other.differs(Decimal(1), Decimal(0))
