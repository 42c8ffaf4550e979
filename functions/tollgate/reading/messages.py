"""Messages between the gateway and what reads for it: one task, and one batch of pages or a fault.

Both sides are of one version: they are installed, and deployed, together.
"""

from contextlib import closing
from typing import Final

import msgspec
from msgspec import Struct

from tollgate.core.documents import (
    DocumentFault,
    DocumentPage,
    ReadingTask,
    UnreadableDocument,
)
from tollgate.reading.read import open_document, read_pages


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

# Of a page beside its text and its picture, as JSON.
_PAGE_MARK_BYTES: Final = 128


def perform(request: ReadingRequest) -> ReadingReply:
    """Return the pages that a request is for, or the fault of its document."""
    try:
        return _read(request)
    except UnreadableDocument as error:
        return ReadFault(fault=error.fault, amount=error.amount, most=error.most)
    except MemoryError:
        return ReadFault(fault=DocumentFault.TOO_COMPLEX)


def _read(request: ReadingRequest) -> ReadBatch:
    pages: list[DocumentPage] = []
    next_page: int | None = None
    room = request.bytes_max
    with closing(open_document(request.content, request.media_type, request.task)) as opened:
        for page in read_pages(opened, request.task, first=request.first):
            room -= _size(page)
            if room < 0 and pages:
                next_page = page.number
                break
            pages.append(page)
        return ReadBatch(
            pages=tuple(pages),
            pages_total=opened.pages_total,
            title=opened.title,
            next_page=next_page,
        )


def _size(page: DocumentPage) -> int:
    """Return the most bytes that a page has as JSON."""
    picture = len(page.picture.base64) if page.picture else 0
    return len(msgspec.json.encode(page.text)) + picture + _PAGE_MARK_BYTES
