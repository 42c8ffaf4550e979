"""Cells of tables: text is no formula, numbers are numbers."""

import pytest

from tollgate.core.csv_cell import csv_cell


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-x", "@SUM(A1)", "\t=1", "-2+3", "-1e9"])
def test_what_a_spreadsheet_would_run_is_text_to_it(text: str) -> None:
    assert csv_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["-0.000042", "-12", "0.5", "plain", "", "a=b"])
def test_numbers_and_other_text_are_left_as_they_are(text: str) -> None:
    assert csv_cell(text) == text


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("x;=cmd|'/c calc'!A1;", "x;'=cmd|'/c calc'!A1;"),
        ("a=1;  @SUM(A1);-1;+1", "a=1;  '@SUM(A1);'-1;'+1"),
        ("x\n=1\r=2;=3", "x\n'=1\r'=2;'=3"),
        ("=1;=2", "'=1;'=2"),
        ("a=1;b=-2;2026-11-22", "a=1;b=-2;2026-11-22"),
    ],
)
def test_a_formula_behind_a_semicolon_is_text_where_semicolons_end_cells(
    text: str, cell: str
) -> None:
    assert csv_cell(text) == cell
