"""An opened document, and functions that clean and limit its text."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from tollgate.core.documents.reading import (
    DOCUMENT_TEXT_BYTES_MAX,
    DocumentFault,
    DocumentPage,
    UnreadableDocument,
)

# Control characters, surrogates and non-characters, which JSON or providers refuse.
_UNSHOWN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


class OpenedDocument(Struct, frozen=True, kw_only=True):
    """An opened document, whose pages are read on demand."""

    pages_total: int
    read_page: Callable[[int], DocumentPage]
    """Returns the page with a number, counted from 1."""
    title: str
    close: Callable[[], None] = lambda: None


def pages_of_text(texts: Sequence[str], title: str = "") -> OpenedDocument:
    """Return a document with one page for each string."""

    def read_page(number: int) -> DocumentPage:
        return DocumentPage(number=number, text=clean_text(texts[number - 1]))

    return OpenedDocument(pages_total=len(texts), read_page=read_page, title=clean_text(title))


def clean_text(text: str) -> str:
    """Return a string with `\\n` line endings, without invisible characters or outer spaces."""
    return _UNSHOWN.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip()


class TextLimit:
    """Limits the size of a document's text while the text is built."""

    def __init__(self) -> None:
        self._bytes = 0

    def add(self, text: str) -> str:
        """Return the text; raise UnreadableDocument if the total size exceeds the limit."""
        self._bytes += len(text.encode(errors="replace"))
        if self._bytes > DOCUMENT_TEXT_BYTES_MAX:
            raise UnreadableDocument(
                DocumentFault.TOO_MUCH_TEXT, amount=self._bytes, most=DOCUMENT_TEXT_BYTES_MAX
            )
        return text


class PartLimit:
    """Limits the number of parts of one kind (rows, cells, elements) while a file is read."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts = 0

    def add(self, parts: int) -> None:
        """Count parts; raise UnreadableDocument if the total exceeds the limit."""
        self._parts += parts
        if self._parts > self._most:
            raise UnreadableDocument(
                DocumentFault.TOO_MANY_PARTS, amount=self._parts, most=self._most
            )
