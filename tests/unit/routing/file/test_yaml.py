"""Scalars by the YAML 1.2 core schema, with decimals exact."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from tests.cells import cells
from tollgate.routing.file.document import Plain, scalar


@cells(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("", None),
        ("~", None),
        ("null", None),
        ("12", 12),
        ("-3", -3),
        ("010", 10),
        ("1_000", "1_000"),
        ("0x1F", "0x1F"),
        ("1:30", "1:30"),
        ("2.20", Decimal("2.20")),
        ("1e-7", Decimal("1e-7")),
        (".5", Decimal("0.5")),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("2026-11-21", "2026-11-21"),
        ("4-5", "4-5"),
        ("9" * 5_000, "9" * 5_000),
        ("1e99999", "1e99999"),
    ],
)
def test_a_plain_scalar_is_what_yaml_1_2_says(text: str, value: Plain) -> None:
    found = scalar(text)
    assert (type(found), found) == (type(value), value)


@given(st.decimals(min_value=0, max_value=1_000_000, places=12))
def test_a_decimal_keeps_every_digit_of_its_text(number: Decimal) -> None:
    assert scalar(f"{number:f}") == number


@given(st.text(max_size=60))
def test_no_text_crashes_the_resolution(text: str) -> None:
    scalar(text)
