"""Documents that the gateway has read before. It sends their pages along with an answer, and
clients send these back so that the documents need not be read again.

A page is a text part that begins with the page number. A page without text is followed by its
image.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from tollgate.core.content import Image, InlineMedia, Text
from tollgate.core.documents.reading import DocumentPage, ReadDocument

_PAGE: Final = re.compile(r"Page (\d{1,6}):\n")


class KnownFile(Struct, frozen=True, kw_only=True):
    """The pages read from a document, with the hash of the document's bytes.

    The caller may have forged the pages, so they are used only for a file in the same request.
    """

    sha256: str
    name: str
    pages: tuple[DocumentPage, ...]
    pages_total: int

    @property
    def read(self) -> ReadDocument:
        """The document as a reader returns it."""
        return ReadDocument(pages=self.pages, pages_total=self.pages_total, title=self.name)


def show_pages(pages: Iterable[DocumentPage]) -> Iterator[Text | Image]:
    """Yield the number and text of each page, followed by its image if it has no text."""
    for page in pages:
        yield Text(text=f"Page {page.number}:\n{page.text}")
        if page.picture is not None and not page.text:
            yield Image(source=page.picture)


def parse_pages(parts: Iterable[Text | InlineMedia]) -> tuple[DocumentPage, ...]:
    """Return the pages that `show_pages` turned into parts; text without a number counts as the
    next page.
    """
    pages: list[DocumentPage] = []
    for part in parts:
        match part:
            case Text(text=text):
                begins = _PAGE.match(text)
                number = int(begins[1]) if begins else len(pages) + 1
                shown = text[begins.end() :] if begins else text
                pages.append(DocumentPage(number=number, text=shown))
            case InlineMedia() if pages:
                last = pages[-1]
                pages[-1] = DocumentPage(number=last.number, text=last.text, picture=part)
            case InlineMedia():
                pages.append(DocumentPage(number=1, text="", picture=part))
    return tuple(pages)
