"""Reads documents of all known types, in a process that may be killed at any time."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Final

import msgspec

from tollgate.core.documents.reading import (
    DOCUMENT_BYTES_MAX,
    DOCUMENT_TEXT_BYTES_MAX,
    DocumentFault,
    DocumentPage,
    ReadBatch,
    ReadFault,
    ReadingReply,
    ReadingRequest,
    ReadingTask,
    UnreadableDocument,
)
from tollgate.core.dotted_names import DottedName
from tollgate.core.files.file_types import is_text_type
from tollgate.core.files.media_types import DOCX, HTML, PDF, XHTML, XLSX
from tollgate.reading.opened import OpenedDocument, pages_of_text

# Maximum size of all images together, in Base64 characters, so that they fit into a request to a
# provider.
PICTURE_BYTES_MAX = 24 * 1024 * 1024
# Size of a page's JSON without its text and image.
_PAGE_MARK_BYTES: Final = 128
# A reader is imported with the first document of its type.
_Opener = Callable[[bytes, ReadingTask], OpenedDocument]
_OPEN_PDF: Final = DottedName[_Opener]("tollgate.reading.pdf:open_pdf")
_OPEN_WEB_PAGE: Final = DottedName[_Opener]("tollgate.reading.web_page:open_web_page")
_OPEN_TEXT: Final = DottedName[_Opener]("tollgate.reading.word:open_text")
_OPEN_SHEETS: Final = DottedName[_Opener]("tollgate.reading.sheets:open_sheets")


def perform(request: ReadingRequest) -> ReadingReply:
    """Return as many of the requested pages as fit into one reply, or the reason why the document
    cannot be read.
    """
    try:
        return _read_batch(request)
    except UnreadableDocument as error:
        return ReadFault(fault=error.fault, amount=error.amount, most=error.most)
    except MemoryError:
        return ReadFault(fault=DocumentFault.TOO_COMPLEX)


def _read_batch(request: ReadingRequest) -> ReadBatch:
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


def open_document(content: bytes, media_type: str, task: ReadingTask) -> OpenedDocument:
    """Open a document; raise UnreadableDocument if its type, size or format is refused."""
    if len(content) > DOCUMENT_BYTES_MAX:
        raise UnreadableDocument(
            DocumentFault.TOO_MANY_BYTES, amount=len(content), most=DOCUMENT_BYTES_MAX
        )
    opened = find_opener(media_type)(content, task)
    if opened.pages_total > task.pages_max and not task.cuts:
        raise UnreadableDocument(
            DocumentFault.TOO_MANY_PAGES, amount=opened.pages_total, most=task.pages_max
        )
    return opened


def find_opener(media_type: str) -> _Opener:
    """Return the function that opens documents of a type, and import what it needs.

    Raises UnreadableDocument for an unsupported type.
    """
    match media_type.partition(";")[0].strip().lower():
        case type_ if type_ == PDF:
            return _OPEN_PDF()
        case type_ if type_ in (HTML, XHTML):
            return _OPEN_WEB_PAGE()
        case type_ if type_ == DOCX:
            return _OPEN_TEXT()
        case type_ if type_ == XLSX:
            return _OPEN_SHEETS()
        case type_ if is_text_type(type_):
            return _open_plain
        case _:
            raise UnreadableDocument(DocumentFault.UNKNOWN_TYPE)


def _open_plain(content: bytes, task: ReadingTask) -> OpenedDocument:
    return pages_of_text([_decode(content)])


def read_pages(
    opened: OpenedDocument, task: ReadingTask, *, first: int = 1
) -> Iterator[DocumentPage]:
    """Yield the requested pages from `first`; raise UnreadableDocument beyond a size limit."""
    text_bytes = picture_bytes = 0
    for number in range(first, min(opened.pages_total, task.pages_max) + 1):
        page = opened.read_page(number)
        text_bytes += len(page.text.encode())
        if text_bytes > DOCUMENT_TEXT_BYTES_MAX:
            raise UnreadableDocument(
                DocumentFault.TOO_MUCH_TEXT, amount=text_bytes, most=DOCUMENT_TEXT_BYTES_MAX
            )
        picture_bytes += len(page.picture.base64) if page.picture else 0
        if picture_bytes > PICTURE_BYTES_MAX:
            raise UnreadableDocument(
                DocumentFault.TOO_LARGE_PICTURES, amount=picture_bytes, most=PICTURE_BYTES_MAX
            )
        yield page


def _size(page: DocumentPage) -> int:
    """Return an upper bound of a page's size as JSON, in bytes."""
    picture = len(page.picture.base64) if page.picture else 0
    return len(msgspec.json.encode(page.text)) + picture + _PAGE_MARK_BYTES


def _decode(content: bytes) -> str:
    """Decode bytes as UTF-16 if they have its byte order mark, else as UTF-8 or Windows-1252."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")
