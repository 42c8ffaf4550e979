"""Documents that the gateway reads for a model: a caller's options, and what a reader returns.

A reader runs apart from the gateway: a document that breaks it, or that takes too much of it,
costs one request.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum, unique
from typing import Final, Literal, Protocol

from msgspec import Struct

from tollgate.core.content import InlineMedia

# Of one document.
DOCUMENT_BYTES_MAX: Final = 64 * 1024 * 1024
# Of all pages of one document, as text.
DOCUMENT_TEXT_BYTES_MAX: Final = 8 * 1024 * 1024


class ReadingTask(Struct, frozen=True, kw_only=True):
    """The part of a document that is read, and the form of its pages."""

    pages_max: int = 100
    """More pages are an error, unless `cuts` is set."""
    cuts: bool = False
    """True leaves out pages after `pages_max`."""
    pictures: Literal["none", "textless", "all"] = "none"
    """The pages that come with a picture: those without text, or all."""
    address: str | None = None
    """The URL of a web page, to which its links are relative."""


class DocumentPage(Struct, frozen=True, kw_only=True):
    """A page as it was read; of a document without pages the only one."""

    number: int
    """From 1."""
    text: str
    """Of a PDF its text layer, of other documents Markdown."""
    picture: InlineMedia | None = None


class ReadDocument(Struct, frozen=True, kw_only=True):
    """The pages of a document that were read."""

    pages: tuple[DocumentPage, ...]
    pages_total: int
    """The pages that it has; more than were read if the task cuts."""
    title: str = ""


@unique
class DocumentFault(StrEnum):
    """The cause for which a document cannot be read."""

    MALFORMED = "malformed"
    ENCRYPTED = "encrypted"
    UNKNOWN_TYPE = "unknown_type"
    TOO_MANY_BYTES = "too_many_bytes"
    TOO_MANY_PAGES = "too_many_pages"
    TOO_MUCH_TEXT = "too_much_text"
    TOO_LARGE_PICTURES = "too_large_pictures"
    TOO_COMPLEX = "too_complex"
    """It unpacks, or nests, beyond every limit."""
    TOO_SLOW = "too_slow"
    CRASHED = "crashed"
    """It ended the process that read it, or took all its memory."""


class UnreadableDocument(Exception):
    """Raised for a document that cannot be read; `amount` is the size that exceeds `most`."""

    def __init__(self, fault: DocumentFault, *, amount: int = 0, most: int = 0) -> None:
        super().__init__(fault.value)
        self.fault = fault
        self.amount = amount
        self.most = most


class ReaderUnavailable(Exception):
    """Raised if no reader can be reached or started: nothing is known of the document."""


class DocumentReader(Protocol):
    """A reader of documents and of web pages, outside this process."""

    async def read(self, content: bytes, media_type: str, task: ReadingTask) -> ReadDocument:
        """Return the pages of a document, or the main text of a web page as one page.

        Raises UnreadableDocument, or ReaderUnavailable.
        """


class RecognitionFailed(Exception):
    """Raised for pages that were not recognized; its words name no key and nothing of a reply."""


class TextRecognizer(Protocol):
    """A paid service that recognizes the text of scanned pages."""

    async def recognize(
        self, document: InlineMedia, pages: Sequence[DocumentPage]
    ) -> Mapping[int, str]:
        """Return the text of each of these pages of a document, by its number, as Markdown.

        Raises RecognitionFailed.
        """
