"""Messages between the gateway and its document reader: a task, and a batch of pages or a fault.

Both sides have the same version, because they are installed and deployed together.
"""

from msgspec import Struct

from tollgate.core.documents.reading import (
    DocumentFault,
    DocumentPage,
    ReadingTask,
    UnreadableDocument,
)


class ReadingRequest(Struct, frozen=True, kw_only=True):
    """A task, with the document itself or the key of the object that holds it."""

    media_type: str
    task: ReadingTask
    content: bytes = b""
    key: str | None = None
    """The key of the object with the document, in the function's bucket."""
    first: int = 1
    """The number of the first page of the batch."""
    bytes_max: int
    """The size limit of the batch in bytes; a batch has at least one page, however large."""


class ReadBatch(Struct, frozen=True, kw_only=True, tag="batch"):
    """Pages of a document; `next_page` is the first page of the next batch, None after the last."""

    pages: tuple[DocumentPage, ...]
    pages_total: int
    title: str = ""
    next_page: int | None = None


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
