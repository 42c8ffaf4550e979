"""Converts Word files to Markdown and Excel files to CSV, with python-docx and openpyxl."""

import csv
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO, StringIO
from typing import Final
from xml.etree.ElementTree import ParseError

import docx
import openpyxl
from docx.document import Document as WordDocument
from docx.table import Table
from docx.text.hyperlink import Hyperlink
from docx.text.paragraph import Paragraph
from lxml.etree import LxmlError  # type: ignore[import-untyped]  # it ships no types

from tollgate.core.documents.reading import DocumentFault, UnreadableDocument
from tollgate.reading.opened import OpenedDocument, TextLimit, pages_of_text

# Maximum unpacked size. It can be checked early, because an office file is a zip archive, which
# states the size of each entry.
UNPACKED_BYTES_MAX: Final = 128 * 1024 * 1024
_ENTRIES_MAX: Final = 5_000
_BULLET: Final = "List Bullet"
_NUMBERED: Final = "List Number"
_HEADING: Final = "Heading "
# Errors that the libraries raise for malformed files.
_THEIR_ERRORS: Final = (
    AttributeError,
    EOFError,
    LookupError,
    LxmlError,
    NotImplementedError,
    OSError,
    ParseError,
    RecursionError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


def open_text(content: bytes) -> OpenedDocument:
    """Return a Word document as one page of Markdown; raise UnreadableDocument."""
    _check_archive(content)
    limit = TextLimit()
    with _faults():
        document = docx.Document(BytesIO(content))
        text = "\n".join(limit.add(block) for block in _blocks(document))
        return pages_of_text([text], document.core_properties.title or "")


def open_sheets(content: bytes) -> OpenedDocument:
    """Return a workbook with each sheet as a page of CSV; raise UnreadableDocument."""
    _check_archive(content)
    limit = TextLimit()
    with _faults():
        book = openpyxl.load_workbook(
            BytesIO(content), read_only=True, data_only=True, keep_links=False
        )
        texts = []
        for sheet in book.worksheets:
            # The dimensions that the file states may be wrong.
            sheet.reset_dimensions()
            rows = "".join(limit.add(row) for row in _rows(sheet.iter_rows(values_only=True)))
            texts.append(f"# {sheet.title}\n\n{rows}")
    if not texts:
        raise UnreadableDocument(DocumentFault.MALFORMED)
    return pages_of_text(texts)


def _check_archive(content: bytes) -> None:
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise UnreadableDocument(DocumentFault.MALFORMED) from error
    unpacked = sum(entry.file_size for entry in entries)
    if len(entries) > _ENTRIES_MAX or unpacked > UNPACKED_BYTES_MAX:
        raise UnreadableDocument(
            DocumentFault.TOO_COMPLEX, amount=unpacked, most=UNPACKED_BYTES_MAX
        )
    if any(entry.flag_bits & 1 for entry in entries):
        raise UnreadableDocument(DocumentFault.ENCRYPTED)


def _blocks(document: WordDocument) -> Iterator[str]:
    for block in document.iter_inner_content():
        yield f"{_paragraph(block)}\n" if isinstance(block, Paragraph) else f"{_table(block)}\n"


def _paragraph(paragraph: Paragraph) -> str:
    text = "".join(
        f"[{part.text}]({part.url})" if isinstance(part, Hyperlink) and part.url else part.text
        for part in paragraph.iter_inner_content()
    )
    style = paragraph.style.name if paragraph.style and paragraph.style.name else ""
    if style == "Title":
        return f"# {text}"
    if style.startswith(_HEADING) and style.removeprefix(_HEADING).isdigit():
        level = min(int(style.removeprefix(_HEADING)), 6)
        return f"{'#' * level} {text}"
    if style.startswith(_BULLET):
        return f"- {text}"
    if style.startswith(_NUMBERED):
        return f"1. {text}"
    return text


def _table(table: Table) -> str:
    rows = [
        [cell.text.replace("\n", " ").replace("|", "\\|") for cell in row.cells]
        for row in table.rows
    ]
    if not rows:
        return ""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join((lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]))


def _rows(rows: Iterator[tuple[object, ...]]) -> Iterator[str]:
    for row in rows:
        cells = ["" if value is None else str(value) for value in row]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            line = StringIO()
            csv.writer(line, lineterminator="\n").writerow(cells)
            yield line.getvalue()


@contextmanager
def _faults() -> Iterator[None]:
    """Convert the libraries' errors to UnreadableDocument."""
    try:
        yield
    except _THEIR_ERRORS as error:
        raise UnreadableDocument(DocumentFault.MALFORMED) from error
