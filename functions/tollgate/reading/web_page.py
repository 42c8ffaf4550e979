"""Converts the main text of a web page to Markdown with links, with trafilatura."""

from copy import deepcopy
from typing import Any, Final

import trafilatura
from trafilatura.settings import DEFAULT_CONFIG
from trafilatura.utils import load_html

from tollgate.core.documents.reading import DocumentFault, ReadingTask, UnreadableDocument
from tollgate.reading.opened import OpenedDocument, PartLimit, TextLimit, pages_of_text

# Maximum number of elements of a page; trafilatura takes about 0.1 ms for one.
ELEMENTS_MAX: Final = 150_000
# Maximum number of links listed for a page without links in its text, such as a front page.
_LINKS_MAX: Final = 200
# Hidden text is removed, because it is often a prompt injection.
_HIDDEN: Final = (
    "//*[@hidden or @aria-hidden='true' or self::script or self::style or self::template"
    " or self::noscript or contains(translate(@style, ' ', ''), 'display:none')"
    " or contains(translate(@style, ' ', ''), 'visibility:hidden')]"
)
# If the main text is shorter, trafilatura returns the whole page, including menus.
_TEXT_CHARACTERS_MIN: Final = "20"


def open_web_page(content: bytes, task: ReadingTask) -> OpenedDocument:
    """Return a web page as a document of one page; raise UnreadableDocument if it is not HTML."""
    tree = load_html(content)
    if tree is None:
        # The library requires the outermost element, which HTML allows a page to omit ("Optional
        # tags").
        tree = load_html(b"<html>" + content)
    if tree is None:
        raise UnreadableDocument(DocumentFault.MALFORMED)
    elements = PartLimit(ELEMENTS_MAX)
    for _ in tree.iter():
        elements.add(1)
    title = " ".join((tree.findtext(".//title") or "").split())
    if task.address is not None:
        tree.make_links_absolute(task.address, handle_failures="ignore")
    for element in tree.xpath(_HIDDEN):
        # Unlike `remove`, `drop_tree` keeps the text that follows the element.
        element.drop_tree()
    links = _links(tree)
    config = deepcopy(DEFAULT_CONFIG)
    config.set("DEFAULT", "MIN_EXTRACTED_SIZE", _TEXT_CHARACTERS_MIN)
    text = trafilatura.extract(
        tree,
        url=task.address,
        output_format="markdown",
        include_links=True,
        include_tables=True,
        include_comments=False,
        config=config,
    )
    text = text or trafilatura.html2txt(tree) or ""
    if "](" not in text and links:
        text = "\n\n".join((text, "Links:", "\n".join(links)))
    return pages_of_text([TextLimit().add(text)], title)


def _links(tree: Any) -> list[str]:
    names: dict[str, str] = {}
    for anchor in tree.iterfind(".//a[@href]"):
        name = " ".join("".join(anchor.itertext()).split())
        address = anchor.get("href", "").strip()
        if name and address.startswith(("http://", "https://", "/")):
            names.setdefault(address, name)
        if len(names) == _LINKS_MAX:
            break
    return [f"- [{name}]({address})" for address, name in names.items()]
