"""Messages between the gateway and what reads for it: one task, and one batch of pages or a fault.

Both sides are of one version: they are installed, and deployed, together.
"""

from msgspec import Struct

from tollgate.core.documents.reading import (
    DocumentFault,
    DocumentPage,
    ReadingTask,
    UnreadableDocument,
)


class ReadingRequest(Struct, frozen=True, kw_only=True):
    """A task, and the document itself or the place where it lies."""

    media_type: str
    task: ReadingTask
    content: bytes = b""
    key: str | None = None
    """The key of the object that has the content, in the bucket of the function."""
    first: int = 1
    """The page with which the batch begins."""
    bytes_max: int
    """Of the pages of the batch, which has one page at least."""


class ReadBatch(Struct, frozen=True, kw_only=True, tag="batch"):
    """Pages of a document, and the first that comes in the next batch, None after the last."""

    pages: tuple[DocumentPage, ...]
    pages_total: int
    title: str = ""
    next_page: int | None = None


class ReadFault(Struct, frozen=True, kw_only=True, tag="fault"):
    """The cause for which the document cannot be read."""

    fault: DocumentFault
    amount: int = 0
    most: int = 0

    @property
    def error(self) -> UnreadableDocument:
        """The error that it stands for."""
        return UnreadableDocument(self.fault, amount=self.amount, most=self.most)


ReadingReply = ReadBatch | ReadFault
