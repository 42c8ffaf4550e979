"""Read the main text of a web page as Markdown with its links, through trafilatura."""

from copy import deepcopy
from typing import Any, Final

import trafilatura
from trafilatura.settings import DEFAULT_CONFIG
from trafilatura.utils import load_html

from tollgate.core.documents.reading import DocumentFault, ReadingTask, UnreadableDocument
from tollgate.reading.opened import OpenedDocument, TextLimit, pages_of_text

# Of a page that has links and no text: a front page, an index.
_LINKS_MAX: Final = 200
# Text that no visitor sees is often meant for models alone.
_HIDDEN: Final = (
    "//*[@hidden or @aria-hidden='true' or self::script or self::style or self::template"
    " or self::noscript or contains(translate(@style, ' ', ''), 'display:none')"
    " or contains(translate(@style, ' ', ''), 'visibility:hidden')]"
)
# A short page is a page, too: below this its library would take everything, menus included.
_TEXT_CHARACTERS_MIN: Final = "20"


def open_web_page(content: bytes, task: ReadingTask) -> OpenedDocument:
    """Return a web page as one page; raise UnreadableDocument if it is no HTML."""
    tree = load_html(content)
    if tree is None:
        # A page may leave out its outermost element (HTML, "Optional tags"), which the library
        # takes for no page at all.
        tree = load_html(b"<html>" + content)
    if tree is None:
        raise UnreadableDocument(DocumentFault.MALFORMED)
    title = " ".join((tree.findtext(".//title") or "").split())
    if task.address is not None:
        tree.make_links_absolute(task.address, handle_failures="ignore")
    for element in tree.xpath(_HIDDEN):
        # With the element the text after it would go.
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
    found: dict[str, str] = {}
    for anchor in tree.iterfind(".//a[@href]"):
        name = " ".join("".join(anchor.itertext()).split())
        address = anchor.get("href", "").strip()
        if name and address.startswith(("http://", "https://", "/")):
            found.setdefault(address, name)
        if len(found) == _LINKS_MAX:
            break
    return [f"- [{name}]({address})" for address, name in found.items()]
