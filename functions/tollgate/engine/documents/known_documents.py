"""The documents of a request as they were read, and the endpoints that take pictures of pages."""

from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.content import InlineMedia
from tollgate.core.documents.reading import ReadDocument
from tollgate.core.files.media_types import PDF
from tollgate.providers.ports.base import Target


class KnownDocument(Struct, frozen=True, kw_only=True):
    """A document of a request, as it was read."""

    content: InlineMedia
    read: ReadDocument
    sha256: str
    name: str = ""
    is_new: bool = True
    """False if the caller returned the pages of an earlier answer, which are free of charge."""

    @property
    def media_type(self) -> str:
        """The media type of the content."""
        return self.content.media_type

    @property
    def textless(self) -> frozenset[int]:
        """The numbers of the pages of a PDF that have no text."""
        if self.media_type != PDF:
            return frozenset()
        return frozenset(page.number for page in self.read.pages if not page.text)

    def without_text(self) -> Self:
        """Return a new PDF without text, so that all pages are recognized; others unchanged."""
        if self.media_type != PDF or not self.is_new:
            return self
        pages = tuple(replace(page, text="") for page in self.read.pages)
        return replace(self, read=replace(self.read, pages=pages))

    @property
    def has_text(self) -> bool:
        """True if a model that takes no pictures gets some of the document's content."""
        return any(page.text for page in self.read.pages)


def takes_pictures(target: Target) -> bool:
    """Return whether an endpoint takes pictures."""
    return "image" in target.input
