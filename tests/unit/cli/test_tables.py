"""What commands print: amounts for people, cells for spreadsheets."""

import pytest

from tollgate.cli.tables import dollars, show


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
