"""Reads the text of PDF pages, and renders pages as images, with PDFium."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pypdfium2 as pdfium  # type: ignore[import-untyped]  # it ships no types
import pypdfium2.raw as pdfium_c  # type: ignore[import-untyped]

from tollgate.core.content import InlineMedia
from tollgate.core.documents.reading import (
    DocumentFault,
    DocumentPage,
    ReadingTask,
    UnreadableDocument,
)
from tollgate.reading.opened import OpenedDocument, clean_text
from tollgate.reading.png import encode_png

# Maximum length of an image's longer side in pixels; models scale larger images down.
# https://platform.claude.com/docs/en/build-with-claude/vision (2026-11-22)
PICTURE_SIDE_MAX: Final = 1_568
# Maximum enlargement (216 dots per inch), so that a tiny page does not become a huge image.
_SCALE_MAX: Final = 3.0
# A page with fewer characters, such as a page number or a stamp, counts as a scan.
_CHARACTERS_OF_TEXT_MIN: Final = 8


def open_pdf(content: bytes, task: ReadingTask) -> OpenedDocument:
    """Open a PDF; raise UnreadableDocument if the file is encrypted or malformed."""
    with _faults():
        document = pdfium.PdfDocument(content)
        pages_total = len(document)
        title = document.get_metadata_value("Title") or ""
    if pages_total == 0:
        raise UnreadableDocument(DocumentFault.MALFORMED)

    def read_page(number: int) -> DocumentPage:
        with _faults():
            return _read_page(document, number, task)

    return OpenedDocument(
        pages_total=pages_total, read_page=read_page, title=clean_text(title), close=document.close
    )


def _read_page(document: Any, number: int, task: ReadingTask) -> DocumentPage:
    page = document[number - 1]
    try:
        text_page = page.get_textpage()
        try:
            text = clean_text(text_page.get_text_bounded())
        finally:
            text_page.close()
        return DocumentPage(
            number=number,
            text=text,
            picture=_draw(page) if _is_pictured(page, text, task) else None,
        )
    finally:
        page.close()


def _is_pictured(page: Any, text: str, task: ReadingTask) -> bool:
    match task.pictures:
        case "none":
            return False
        case "all":
            return True
        case "textless":
            # A page without objects is blank, so no image is needed.
            characters = len("".join(text.split()))
            return characters < _CHARACTERS_OF_TEXT_MIN and pdfium_c.FPDFPage_CountObjects(page) > 0


def _draw(page: Any) -> InlineMedia:
    width, height = page.get_size()
    scale = min(PICTURE_SIDE_MAX / max(width, height, 1.0), _SCALE_MAX)
    bitmap = page.render(scale=scale, rev_byteorder=True)
    try:
        png = encode_png(
            bytes(bitmap.buffer),
            bitmap.width,
            bitmap.height,
            stride=bitmap.stride,
            channels=bitmap.n_channels,
        )
    finally:
        bitmap.close()
    return InlineMedia(media_type="image/png", base64=base64.b64encode(png).decode("ascii"))


@contextmanager
def _faults() -> Iterator[None]:
    """Convert the library's errors to UnreadableDocument."""
    try:
        yield
    except pdfium.PdfiumError as error:
        locked = (pdfium_c.FPDF_ERR_PASSWORD, pdfium_c.FPDF_ERR_SECURITY)
        code = getattr(error, "err_code", None)
        fault = DocumentFault.ENCRYPTED if code in locked else DocumentFault.MALFORMED
        raise UnreadableDocument(fault) from error
