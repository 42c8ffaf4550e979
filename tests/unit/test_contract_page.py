"""Every number that is cited is defined here, and docs/contract.md lists what is untested.

C42 is a statement of the contract, Q12 a quirk of a provider, I3 an invariant of the ledger, R021 a
problem of a routing file, D6 and "decision 6" the decision record 0006.
"""

import re
from collections import defaultdict
from pathlib import Path

import pytest

from tollgate.web.access import ACCESS

ROOT = Path(__file__).parents[2]
CONTRACT = ROOT / "docs" / "contract.md"
CITING = ("functions", "tests", "infra", "bench", "docs", ".github")
SUFFIXES = {".py", ".md", ".yaml", ".yml"}
DECISIONS = {f"D{int(path.name[:4])}" for path in (ROOT / "docs" / "decisions").glob("[0-9]*-*.md")}

# A number in prose, and one in the name of a test: `test_c64_c60_a_…`, `test_q17_…`.
IN_PROSE = re.compile(r"(?<![\w.-])(?:[CQID][0-9]{1,2}|R[0-9]{3})(?![\w-])")
IN_A_NAME = re.compile(r"\bdef test_((?:[cqidr][0-9]+_)+)")
A_DECISION = re.compile(r"\bdecisions? ([0-9]{1,4})\b|decisions/([0-9]{4})-")
UNTESTED = re.compile(r"^No test names these: ([C0-9, ]+)\.$", re.M)
KEPT = re.compile(r"\bKeeps ([CQIDR0-9, \n]+)\.")
# A test that only `make test-nightly` runs; one with some nightly cases is no such test.
A_NIGHTLY_TEST = re.compile(
    r"^@(?:pytest\.mark\.)?nightly\n(?:[@ )\]].*\n)*(?:async )?def test_", re.M
)


def sources() -> list[Path]:
    found = list(ROOT.glob("*.md"))
    for folder in CITING:
        found += [path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    return [path for path in found if path != Path(__file__)]


def defined_in(page: str, pattern: str) -> set[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    numbers = re.findall(pattern, text, re.MULTILINE)
    assert len(numbers) == len(set(numbers)), f"{page} defines a number twice"
    return set(numbers)


@pytest.fixture(scope="module")
def stated() -> set[str]:
    return defined_in("docs/contract.md", r"^- \*\*(C[0-9]+)\*\* ")


@pytest.fixture(scope="module")
def cited() -> dict[str, set[str]]:
    """The files that cite each number."""
    places = defaultdict(set)
    for path in sources():
        text = path.read_text(encoding="utf-8")
        names = "_".join(IN_A_NAME.findall(text)).upper()
        decisions = (one or other for one, other in A_DECISION.findall(text))
        for number in (
            *IN_PROSE.findall(text),
            *filter(None, names.split("_")),
            *(f"D{int(decision)}" for decision in decisions),
        ):
            places[number].add(str(path.relative_to(ROOT)))
    return dict(places)


def test_every_number_that_is_cited_is_defined(
    stated: set[str], cited: dict[str, set[str]]
) -> None:
    defined = {
        *stated,
        *defined_in("functions/tollgate/providers/README.md", r"^- \*\*(Q[0-9]+)\*\* "),
        *defined_in("docs/ledger.md", r"^\| (I[0-9]+) \|"),
        *defined_in("infra/routing-reference.md", r"^- \*\*(R[0-9]{3})\*\* "),
        *DECISIONS,
    }
    assert len(cited) > 150
    assert {number: places for number, places in cited.items() if number not in defined} == {}


def statements_of(text: str) -> set[str]:
    """Return the statements that a file's tests name, those of a nightly test left out."""
    text = A_NIGHTLY_TEST.sub("def nightly_", text)
    if "def test_" not in text:
        return set()
    names = [*IN_A_NAME.findall(text.lower()), *KEPT.findall(text)]
    return set(re.findall(r"C[0-9]+", "_".join(names).upper()))


def test_a_statement_that_is_tested_at_night_alone_is_not_tested() -> None:
    whole = "def test_c1_holds() -> None:\n    pass\n"
    decorated = f'@pytest.mark.nightly\n@pytest.mark.parametrize(\n    "a", [1]\n)\nasync {whole}'
    assert statements_of(whole) == {"C1"}
    assert statements_of(decorated) == statements_of(f'"""Keeps C2."""\n@nightly\n{whole}') == set()
    assert statements_of(f'"""Keeps C2."""\n{decorated}\n\ndef test_it() -> None:\n') == {"C2"}


def test_the_page_lists_the_statements_that_no_test_names(stated: set[str]) -> None:
    tested: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        tested |= statements_of(path.read_text(encoding="utf-8"))
    listed = UNTESTED.findall(CONTRACT.read_text())
    assert [name for names in listed for name in names.split(", ")] == sorted(
        stated - tested, key=lambda number: int(number[1:])
    )


def test_what_no_test_names_is_marked_as_not_built() -> None:
    page = CONTRACT.read_text(encoding="utf-8")
    listed = UNTESTED.findall(page)
    statements = dict(re.findall(r"^- \*\*(C[0-9]+)\*\* (.*?)(?=^- \*\*|^## )", page, re.M | re.S))
    unmarked = [
        name
        for names in listed
        for name in names.split(", ")
        if "- Not built: " not in statements[name]
    ]
    assert unmarked == []


def test_no_route_that_is_served_is_named_as_not_built() -> None:
    routes = {path.removeprefix("/v1") for _, path in ACCESS}
    page = CONTRACT.read_text(encoding="utf-8")
    missing = re.findall(r"^  - Not built: (.*?)(?=^(?:  )?- |^#)", page, re.M | re.S)
    assert len(missing) > 1
    assert routes & {name for text in missing for name in re.findall(r"`([^`]+)`", text)} == set()


def test_the_readme_names_nothing_as_not_built_that_its_table_has() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    [missing] = re.findall(r"^Not built yet: (.*?)\. ", text, re.M | re.S)
    rows = re.findall(r"^\| \*\*(.+?)\*\* \|", text, re.M)
    has = {name.lower() for row in rows for name in row.split(", ")}
    assert {"embeddings", "images", "speech"} <= has
    assert has & set(re.split(r", | and ", missing)) == set()


def test_statements_stand_in_the_order_of_their_numbers() -> None:
    numbers = [
        int(number) for number in re.findall(r"^- \*\*C([0-9]+)\*\*", CONTRACT.read_text(), re.M)
    ]
    assert numbers == sorted(numbers)
    assert len(numbers) > 60
