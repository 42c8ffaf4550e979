"""The documentation as a site: its menu, its links, its references, and a strict build."""

import subprocess
import tomllib
from pathlib import Path

import pytest

from infra.site.__main__ import PAGES, ROOT, list_pages, rewrite_links, write_site
from tests.local_server import ROOT as PROJECT

MENU = tomllib.loads(PAGES.read_text(encoding="utf-8"))
LISTED = [page for section in MENU["section"] for page in section["pages"]]
REPOSITORY = "https://example.com/acme/tollgate"
FOUND = frozenset(list_pages())


def test_the_menu_lists_every_page_of_the_docs_once() -> None:
    docs = {page for page in FOUND if page.startswith("docs/") and "/decisions/" not in page}
    assert docs - set(LISTED) == set()
    assert len(LISTED) == len(set(LISTED))
    assert {page for page in LISTED if not page.startswith("reference/")} <= FOUND


@pytest.mark.parametrize(
    ("written", "repository", "shown"),
    [
        ("[keys](keys-and-credits.md#keys)", None, "[keys](keys-and-credits.md#keys)"),
        ("[two\nlines](../infra/README.md)", None, "[two\nlines](../infra/README.md)"),
        ("[a file](../Makefile)", None, "a file"),
        ("[a file](../Makefile)", REPOSITORY, f"[a file]({REPOSITORY}/blob/main/Makefile)"),
        ("[elsewhere](https://example.com/a)", REPOSITORY, "[elsewhere](https://example.com/a)"),
        ("![a picture](screenshots/a.png)", None, "![a picture](screenshots/a.png)"),
    ],
)
def test_a_link_to_a_file_that_is_no_page_leaves_the_site(
    written: str, repository: str | None, shown: str
) -> None:
    assert rewrite_links("docs/people.md", written, FOUND, repository) == shown


@pytest.mark.nightly
def test_the_site_is_built_without_a_warning_and_has_every_command_and_setting(
    tmp_path: Path,
) -> None:
    assert ROOT == PROJECT
    write_site(tmp_path / "site", REPOSITORY)
    written = {
        path.stem: path.read_text() for path in (tmp_path / "site/pages/reference").iterdir()
    }
    assert "## tollgate keys create\n" in written["command-line"]
    assert "| `TOLLGATE_CORE_TABLE` |" in written["settings"]
    assert "| `insufficient_credits` | 402 |" in written["errors"]
    assert "| `POST /v1/keys` | Create a key" in written["api"]
    program = PROJECT / ".tools" / "site" / "bin" / "zensical"
    built = subprocess.run(
        [program, "build", "--strict", "--config-file", tmp_path / "site" / "mkdocs.yml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    assert (tmp_path / "site" / "site" / "reference" / "command-line.html").stat().st_size > 100_000
