"""Converts Excel files to CSV, a page for each sheet, with openpyxl."""

import csv
from collections.abc import Iterator
from io import BytesIO, StringIO
from typing import Final

import openpyxl

from tollgate.core.documents.reading import (
    DocumentFault,
    DocumentPage,
    ReadingTask,
    UnreadableDocument,
)
from tollgate.reading.archive import check_archive, malformed_faults
from tollgate.reading.opened import OpenedDocument, PartLimit, TextLimit, clean_text

# Maximum number of rows in all sheets together (Excel's maximum for one sheet), and of their cells.
# openpyxl also returns the empty rows and cells within the dimensions that a file claims.
# https://support.microsoft.com/office/1672b34d-7043-467e-8e27-269d656771c3 (2026-11-27)
SHEET_ROWS_MAX: Final = 1_048_576
SHEET_CELLS_MAX: Final = 2_000_000


def open_sheets(content: bytes, task: ReadingTask) -> OpenedDocument:
    """Return a workbook with each sheet as a page of CSV; raise UnreadableDocument."""
    check_archive(content)
    with malformed_faults():
        book = openpyxl.load_workbook(
            BytesIO(content), read_only=True, data_only=True, keep_links=False
        )
        sheets = book.worksheets
    if not sheets:
        raise UnreadableDocument(DocumentFault.MALFORMED)
    text_limit, row_limit, cell_limit = (
        TextLimit(),
        PartLimit(SHEET_ROWS_MAX),
        PartLimit(SHEET_CELLS_MAX),
    )

    def read_page(number: int) -> DocumentPage:
        sheet = sheets[number - 1]
        with malformed_faults():
            # The dimensions that the file claims may be wrong.
            sheet.reset_dimensions()
            rows = _rows(sheet.iter_rows(values_only=True), row_limit, cell_limit)
            text = "".join(text_limit.add(row) for row in rows)
        return DocumentPage(number=number, text=clean_text(f"# {sheet.title}\n\n{text}"))

    return OpenedDocument(pages_total=len(sheets), read_page=read_page, title="")


def _rows(
    rows: Iterator[tuple[object, ...]], row_limit: PartLimit, cell_limit: PartLimit
) -> Iterator[str]:
    for row in rows:
        row_limit.add(1)
        cell_limit.add(len(row))
        cells = ["" if value is None else str(value) for value in row]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            line = StringIO()
            csv.writer(line, lineterminator="\n").writerow(cells)
            yield line.getvalue()
