"""docs/providers.md says what its endpoints accept; each quirk is listed and has a test.

Keeps C11, C13, C14, C16.
"""

import re
from pathlib import Path

import pytest

from tests import support_table
from tests.cells import cells

WRITTEN = support_table.PAGE.read_text(encoding="utf-8")
QUIRKS = support_table.ROOT / "functions" / "tollgate" / "providers" / "README.md"
THIS = Path(__file__)


def test_the_tables_are_what_the_codecs_do() -> None:
    made = support_table.page(WRITTEN)
    assert made == WRITTEN, "docs/providers.md is stale: run python -m tests.support_table"


@pytest.fixture(scope="module")
def named_in_tests() -> set[str]:
    """The numbers of quirks in names and docstrings of tests."""
    paths = [path for path in THIS.parents[1].rglob("*.py") if path != THIS]
    sources = (path.read_text(encoding="utf-8") for path in paths)
    return {
        number
        for source in sources
        for line in re.findall(r'^\s*(?:async )?def test_\w+|""".*', source, re.MULTILINE)
        for number in re.findall(r"(?:_q|\bQ)(\d{1,2})(?!\d)", line)
    }


@cells("number", range(1, 41), ids=lambda number: f"Q{number}")
def test_a_quirk_is_documented_and_has_a_test_that_names_it(
    number: int, named_in_tests: set[str]
) -> None:
    assert str(number) in named_in_tests
    assert re.search(rf"^- \*\*Q{number}\*\* ", QUIRKS.read_text(encoding="utf-8"), re.MULTILINE)
