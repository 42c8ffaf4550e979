"""Write the pages of the site into a folder, for `zensical build`.

`python -m infra.site FOLDER [REPOSITORY]`: links to files that are not pages lead to REPOSITORY,
such as https://github.com/acme/tollgate. Without a repository, these links become text.
"""

import json
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from infra.site.references import write_references

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = Path(__file__).with_name("pages.toml")
_FOLDERS: Final = ("docs", "infra")
_LINK: Final = re.compile(r"(?<!!)\[([^\]]+)\]\(([^()\s:]+)\)")
_FEATURES: Final = (
    "content.code.copy",
    "navigation.footer",
    "navigation.sections",
    "navigation.top",
    "search.highlight",
)
_EXTENSIONS: Final = ("admonition", "attr_list", "tables", "pymdownx.superfences", "toc")


def write_site(folder: Path, repository: str | None) -> None:
    """Write the pages and the configuration of the site into a folder, which is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    sources = {page: (ROOT / page).read_text(encoding="utf-8") for page in list_pages()}
    references = write_references(ROOT / "routing.yaml")
    texts = {**sources, **{f"reference/{name}.md": text for name, text in references.items()}}
    for page, text in texts.items():
        path = folder / "pages" / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rewrite_links(page, text, frozenset(texts), repository), encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "screenshots", folder / "pages" / "docs" / "screenshots")
    menu = tomllib.loads(PAGES.read_text(encoding="utf-8"))
    (folder / "mkdocs.yml").write_text(_configuration(menu, texts), encoding="utf-8")


def list_pages() -> list[str]:
    """Return the pages of the repository that are on the site, as paths below its root."""
    top = (path for path in ROOT.glob("*.md"))
    below = (path for folder in _FOLDERS for path in (ROOT / folder).rglob("*.md"))
    return sorted(path.relative_to(ROOT).as_posix() for path in (*top, *below))


def rewrite_links(page: str, text: str, pages: frozenset[str], repository: str | None) -> str:
    """Return the text of a page, in which links to files that are no pages leave the site."""

    def rewrite(link: re.Match[str]) -> str:
        name, target = link.groups()
        path, _, _ = target.partition("#")
        resolved = (ROOT / page).parent.joinpath(path).resolve() if path else ROOT / page
        inside = resolved.relative_to(ROOT).as_posix()
        if inside in pages:
            return link[0]
        return f"[{name}]({repository}/blob/main/{inside})" if repository else name

    return _LINK.sub(rewrite, text)


def _configuration(menu: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    """Return the configuration, which is JSON and so YAML too."""
    return json.dumps(
        {
            "site_name": menu["site_name"],
            "site_description": menu["site_description"],
            "docs_dir": "pages",
            "site_dir": "site",
            "use_directory_urls": False,
            "nav": [
                {section["title"]: list(_entries(section["pages"], texts))}
                for section in menu["section"]
            ],
            "theme": {"features": _FEATURES, "font": False},
            "markdown_extensions": _EXTENSIONS,
        },
        indent=2,
    )


def _entries(pages: list[str], texts: Mapping[str, str]) -> Iterator[dict[str, str]]:
    for page in pages:
        title = re.search(r"^# (.+)$", texts[page], re.MULTILINE)
        yield {title[1] if title else page: page}


if __name__ == "__main__":
    write_site(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
