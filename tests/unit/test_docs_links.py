"""Every page is linked from where readers begin, and every relative link leads somewhere."""

import re
from pathlib import Path

from tests.cells import cells

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FOLDERS = ("docs", "functions", "infra", "bench", "tests", ".github")
PAGES = sorted(
    path
    for place in (ROOT, *(ROOT / name for name in FOLDERS))
    for path in (place.glob("*.md") if place == ROOT else place.rglob("*.md"))
)
# Neither pictures nor code: `[text](target)`, without a title.
LINK = re.compile(r"(?<!!)\[[^\]\n]+\]\(([^()\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]+`")


def links_of(page: Path) -> list[str]:
    text = CODE.sub("``", FENCE.sub("", page.read_text(encoding="utf-8")))
    return [link for link in LINK.findall(text) if "://" not in link]


def anchors_of(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.M)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


@cells("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    broken = []
    for link in links_of(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(link)
    assert broken == []


def test_every_page_is_linked_from_the_readme_or_the_map() -> None:
    linked = {
        (start.parent / link.partition("#")[0]).resolve()
        for start in (ROOT / "README.md", DOCS / "architecture.md", DOCS / "formats.md")
        for link in links_of(start)
    }
    folders = (ROOT, DOCS, DOCS / "formats")
    pages = {path for path in PAGES if path.parent in folders} - {ROOT / "README.md"}
    assert {page.name for page in pages - linked} == set()


def test_every_decision_is_once_in_the_index_of_decisions() -> None:
    linked = links_of(DOCS / "decisions" / "README.md")
    assert sorted(link for link in linked if link[0].isdigit()) == records()


def test_a_merged_number_leads_to_a_record_and_has_none() -> None:
    listed = merged_numbers()
    numbers = {name[:4] for name in records()}
    assert set(listed.values()) <= numbers
    assert set(listed) & numbers == set()


def test_the_index_lists_what_a_record_says_was_merged_into_it() -> None:
    listed = merged_numbers()
    named = {
        number: name[:4]
        for name in records()
        for status in re.findall(
            r"^Decided .*?(?=\n\n)", (DOCS / "decisions" / name).read_text("utf-8"), re.M | re.S
        )
        for number in re.findall(r"\d{4}", status.partition("Merges ")[2])
    }
    assert len(named) > 50
    assert {number: listed.get(number) for number in named} == named


def merged_numbers() -> dict[str, str]:
    """Return the merged numbers of the index with the number that each leads to."""
    index = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    return {
        old: new
        for group in index.partition("Merged numbers: ")[2].rstrip(".\n").split(";")
        for olds, new in [map(str.strip, group.split("→"))]
        for old in re.split(r",\s+", olds)
    }


def records() -> list[str]:
    return sorted(path.name for path in (DOCS / "decisions").glob("[0-9]*.md"))


def test_every_page_that_is_named_in_code_exists() -> None:
    # Workflows write the first four; Codex reads the last where it works.
    elsewhere = {"summary.md", "plan.md", "access-plan.md", "body.md", "AGENTS.md"}
    exist = {path.name for path in (*PAGES, *(ROOT / "tests").rglob("*.md"))}
    named = {
        (page, str(path.relative_to(ROOT)))
        for folder in ("functions", "tests", "infra", "bench", ".github")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".yaml", ".yml"}
        for page in re.findall(r"\b([\w-]+\.md)\b", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 15
    assert {it for it in named if it[0] not in exist | elsewhere} == set()
