"""Documents that the gateway reads for a model: the options, the reader's tasks, and its results.

A reader runs outside the gateway's process, so a document that crashes it or exhausts its memory
affects only one request.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum, unique
from typing import Final, Literal, Protocol

from msgspec import Struct

from tollgate.core.content import InlineMedia

# Size limit of a document.
DOCUMENT_BYTES_MAX: Final = 64 * 1024 * 1024
# Size limit of the text on all pages of one document.
DOCUMENT_TEXT_BYTES_MAX: Final = 8 * 1024 * 1024


# Limit on the total CPU time for all documents of one request.
CPU_SECONDS_MAX: Final = 20.0

# A page is read either as text alone, or as text together with an image of the page.
DocumentEngine = Literal["text", "images"]


class DocumentOptions(Struct, frozen=True, kw_only=True):
    """A caller's options for reading documents; None leaves an option to routing.yaml."""

    engine: DocumentEngine | Literal["native", "ocr"] | None = None
    """`native` leaves documents to models that can read them; with the other engines, the gateway
    reads the documents even for such a model.

    `ocr` transcribes every page by OCR, even if the file contains text.
    """
    pages_max: int | None = None
    """The number of pages to read, from the start of each document."""
    field: str = ""
    """The request field that contains the options."""


class ReadingTask(Struct, frozen=True, kw_only=True):
    """The part of a document that is read, and the form in which its pages are returned."""

    pages_max: int = 100
    """The maximum number of pages; more pages are an error unless `cuts` is set."""
    cuts: bool = False
    """True drops the pages after `pages_max`; otherwise, more pages are an error."""
    pictures: Literal["none", "textless", "all"] = "none"
    """The pages that include an image: those without text, or all."""
    address: str | None = None
    """The URL of a web page, against which its links are resolved."""


class ReadingShare(Struct, frozen=True, kw_only=True):
    """The share of a reader that one reading may use."""

    workspace_id: str
    """The workspace of the caller; workspaces share the reader's capacity evenly."""
    cpu_seconds_max: float = CPU_SECONDS_MAX


class DocumentPage(Struct, frozen=True, kw_only=True):
    """A page as it was read. A document that has no pages is returned as one page."""

    number: int
    """The number of the page, from 1."""
    text: str
    """The text layer of a PDF, or Markdown for other documents."""
    picture: InlineMedia | None = None


class ReadDocument(Struct, frozen=True, kw_only=True):
    """The pages that were read from a document."""

    pages: tuple[DocumentPage, ...]
    pages_total: int
    """The number of pages in the document, which may be more than `pages` if the task cuts."""
    title: str = ""
    cpu_seconds: float = 0.0
    """The CPU time that the reading took; 0 if the document had been read before."""

    @property
    def size_bytes(self) -> int:
        """The total size of all texts and images."""
        return sum(
            len(page.text) + (len(page.picture.base64) if page.picture else 0)
            for page in self.pages
        )


@unique
class DocumentFault(StrEnum):
    """The reason why a document cannot be read."""

    MALFORMED = "malformed"
    ENCRYPTED = "encrypted"
    UNKNOWN_TYPE = "unknown_type"
    TOO_MANY_BYTES = "too_many_bytes"
    TOO_MANY_PAGES = "too_many_pages"
    TOO_MUCH_TEXT = "too_much_text"
    TOO_LARGE_PICTURES = "too_large_pictures"
    TOO_COMPLEX = "too_complex"
    """The document is compressed or nested beyond the limits."""
    TOO_MANY_PARTS = "too_many_parts"
    """The document declares more rows, columns, cells or paragraphs than are read."""
    TOO_SLOW = "too_slow"
    CRASHED = "crashed"
    """The document crashed the process that read it, or exhausted its memory."""


class UnreadableDocument(Exception):
    """Raised for a document that cannot be read; `amount` is the size that exceeds `most`."""

    def __init__(self, fault: DocumentFault, *, amount: int = 0, most: int = 0) -> None:
        super().__init__(fault.value)
        self.fault = fault
        self.amount = amount
        self.most = most


class ReaderUnavailable(Exception):
    """Raised if no reader can be reached or started; the document itself may be fine."""


class DocumentReader(Protocol):
    """Reads documents and web pages outside this process."""

    async def read(
        self, content: bytes, media_type: str, task: ReadingTask, share: ReadingShare
    ) -> ReadDocument:
        """Return the pages of a document, or the main text of a web page as one page.

        Raises UnreadableDocument, or ReaderUnavailable.
        """


class RecognitionFailed(Exception):
    """Raised if OCR failed; the message contains neither the key nor the reply."""


class TextRecognizer(Protocol):
    """A paid OCR service that transcribes scanned pages."""

    async def recognize(
        self, document: InlineMedia, pages: Sequence[DocumentPage]
    ) -> Mapping[int, str]:
        """Return the text of each given page as Markdown, keyed by page number.

        Raises RecognitionFailed.
        """


class ReadingRequest(Struct, frozen=True, kw_only=True):
    """A task, with the document itself or the key of the object that holds it."""

    media_type: str
    task: ReadingTask
    content: bytes = b""
    key: str | None = None
    """The key of the object with the document, in the function's bucket."""
    first: int = 1
    """The number of the first page in the batch."""
    bytes_max: int
    """The size limit of the batch in bytes; a batch has at least one page, however large the page
    is.
    """
    cpu_seconds_max: float = CPU_SECONDS_MAX
    """The limit of the CPU time for the batch."""


class ReadBatch(Struct, frozen=True, kw_only=True, tag="batch"):
    """Pages of a document; `next_page` is the first page of the next batch, None after the last."""

    pages: tuple[DocumentPage, ...]
    pages_total: int
    title: str = ""
    next_page: int | None = None
    cpu_seconds: float = 0.0
    """The CPU time that the batch took."""


class ReadFault(Struct, frozen=True, kw_only=True, tag="fault"):
    """The reason why a document cannot be read."""

    fault: DocumentFault
    amount: int = 0
    most: int = 0

    @property
    def error(self) -> UnreadableDocument:
        """The exception for the fault."""
        return UnreadableDocument(self.fault, amount=self.amount, most=self.most)


ReadingReply = ReadBatch | ReadFault
