"""A table in one test fails as a test of each cell would."""

import pytest

from tests.cells import cells


@cells("number", range(5))
def odd(number: int) -> None:
    assert number % 2


@cells("factor", [2, 3])
@cells(("number", "other"), [(1, 1), (2, 3)])
async def equal(number: int, other: int, factor: int) -> None:
    assert number * factor == other * factor


def test_each_cell_that_fails_is_named() -> None:
    with pytest.raises(BaseExceptionGroup) as raised:
        odd()
    assert [failure.__notes__ for failure in raised.value.exceptions] == [
        [f"in the cell number={number}"] for number in (0, 2, 4)
    ]


async def test_tables_multiply() -> None:
    with pytest.raises(BaseExceptionGroup) as raised:
        await equal()
    notes = [failure.__notes__ for failure in raised.value.exceptions]
    cell = "in the cell number=2, other=3"
    assert notes == [[cell, "in the cell factor=2"], [cell, "in the cell factor=3"]]


def test_a_cell_that_skips_among_others_or_raises_nothing_is_a_failure() -> None:
    @cells("reason", ["skipped", "not raised"])
    def ask(reason: str) -> None:
        if reason == "skipped":
            pytest.skip(reason)
        with pytest.raises(ValueError, match="never"):
            assert reason

    with pytest.raises(BaseExceptionGroup) as raised:
        ask()
    assert len(raised.value.exceptions) == 2


@cells("number", [1, 2])
def skipped(number: int) -> None:
    pytest.skip(f"{number} needs a file")


def test_a_test_whose_cells_all_skip_is_skipped() -> None:
    with pytest.raises(pytest.skip.Exception, match="1 needs a file"):
        skipped()


def test_a_table_without_cells_is_refused() -> None:
    with pytest.raises(ValueError, match="tests nothing"):
        cells("number", [])
