"""Performs the reading that a request message describes."""

from contextlib import closing
from typing import Final

import msgspec

from tollgate.core.documents.reading import (
    DocumentFault,
    DocumentPage,
    ReadBatch,
    ReadFault,
    ReadingReply,
    ReadingRequest,
    UnreadableDocument,
)
from tollgate.reading.read import open_document, read_pages

# JSON bytes of a page besides its text and its picture.
_PAGE_MARK_BYTES: Final = 128


def perform(request: ReadingRequest) -> ReadingReply:
    """Return the requested pages, as many as fit into one reply, or the document's fault."""
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
    """Return an upper bound of a page's size as JSON, in bytes."""
    picture = len(page.picture.base64) if page.picture else 0
    return len(msgspec.json.encode(page.text)) + picture + _PAGE_MARK_BYTES
