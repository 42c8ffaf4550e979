"""docs/ledger.md names tests that are there."""

import re
from pathlib import Path

from tests.faulty_client import MONEY_SITES, TRANSACTION_SITES, faults_at

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
