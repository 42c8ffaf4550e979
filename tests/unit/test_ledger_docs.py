"""docs/ledger.md names tests that are there, and its example of slices is computed."""

import re
from pathlib import Path

from tests.faulty_client import MONEY_SITES, TRANSACTION_SITES, faults_at
from tollgate.stores.rules.slices import even_parts

_ROOT = Path(__file__).parents[2]
_PAGE = (_ROOT / "docs" / "ledger.md").read_text()


def test_each_test_that_the_page_names_exists() -> None:
    defined = {
        name
        for path in (_ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)\(", path.read_text())
    }
    named = set(re.findall(r"`(test_\w+)`", _PAGE))
    assert len(named) > 20
    assert named - defined == set()


def test_the_page_counts_the_faults_that_each_write_meets() -> None:
    pairs = sum(len(faults_at(site)) for site in MONEY_SITES | TRANSACTION_SITES)
    assert f"({pairs} pairs)" in _PAGE


def test_the_example_of_slices_is_what_the_rules_give() -> None:
    rows = re.findall(r"^\| (?:spent \+ held|part of the limit|room) \| (.*) \|$", _PAGE, re.M)
    numbers = [[int(cell) for cell in row.split(" | ")] for row in rows]
    assert len(numbers) == 9
    for used, parts, room in zip(*[iter(numbers)] * 3, strict=True):
        assert [part - taken for part, taken in zip(parts, used, strict=True)] == room
        assert parts[-1] == sum(parts[:-1]) == 100
    assert numbers[1][:-1] == even_parts(100, numbers[0][:-1], [10, 0, 0, 0])
    assert numbers[7][:-1] == even_parts(100, numbers[6][:-1], [0, 0, 0, 0])
