"""What commands print: amounts for people, cells for spreadsheets."""

import pytest

from tollgate.cli.tables import dollars, round_together, show


@pytest.mark.parametrize(
    ("amount", "told"),
    [
        ("0", "$0"),
        ("0.31002", "$0.31002"),
        ("1234.5", "$1,234.50000"),
        ("0.000012", "$0.000012"),
        ("0.000000317", "$0.000000317"),
    ],
)
def test_an_amount_for_people_is_never_rounded_away(amount: str, told: str) -> None:
    assert dollars(amount) == told


def test_c67_a_note_in_a_csv_is_no_formula(capsys: pytest.CaptureFixture[str]) -> None:
    show([{"note": "=HYPERLINK(1)", "amount": "-5"}], ("note", "amount"), "csv")
    assert capsys.readouterr().out == "note,amount\n'=HYPERLINK(1),-5\n"


@pytest.mark.parametrize(
    ("amounts", "shown"),
    [
        (("1025.791234567", "0.5", "0.004", "-3"), ["1,025.79", "0.50", "<0.01", "-3.00"]),
        (("0.31002", "0.000284"), ["0.3100", "0.0003"]),
        (("0.000000317", "0"), ["<0.000001", "0.000000"]),
        ((), []),
    ],
)
def test_c67_amounts_of_a_column_are_rounded_together_and_none_to_zero(
    amounts: tuple[str, ...], shown: list[str]
) -> None:
    assert round_together(amounts) == shown
