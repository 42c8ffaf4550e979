"""Money is integers of a nano-dollar, and exact at the edges.

Keeps C27, C65.
"""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollgate.core.money.amounts import cost_nano_usd, credits_text, nano_usd, usd, usd_text

amounts = st.integers(min_value=0, max_value=10**15)


@pytest.mark.parametrize(
    ("quantity", "usd_per_million", "cost"),
    [
        (0, "3", 0),
        (1, "3", 3_000),
        (1_000_000, "0.25", 250_000_000),
        (1, "0.0004", 0),
        (1, "0.0005", 1),
        (3, "0.0005", 2),
        (1, "0.00049999", 0),
    ],
)
def test_c65_a_line_rounds_half_up_to_a_nano_dollar(
    quantity: int, usd_per_million: str, cost: int
) -> None:
    assert cost_nano_usd(quantity, Decimal(usd_per_million)) == cost


@given(amount=amounts)
def test_dollars_and_back_is_the_same_amount(amount: int) -> None:
    assert nano_usd(usd(amount)) == amount
    assert nano_usd(Decimal(usd_text(amount))) == amount


@given(amount=amounts)
def test_an_amount_is_written_without_exponent_or_idle_zeros(amount: int) -> None:
    text = usd_text(amount)
    assert "E" not in text
    assert "." not in text or not text.endswith(("0", "."))


def test_dollars_round_half_up() -> None:
    assert nano_usd(Decimal("0.0000000005")) == 1
    assert nano_usd(Decimal("0.00000000049")) == 0


@pytest.mark.parametrize(
    ("amount", "rate", "text"),
    [
        (1_000_000_000, "1", "1"),
        (1, "100", "0.0000001"),
        (25, "0.5", "0.0000000125"),
        (0, "9", "0"),
    ],
)
def test_c27_credits_are_dollars_times_the_rate(amount: int, rate: str, text: str) -> None:
    assert credits_text(amount, Decimal(rate)) == text
