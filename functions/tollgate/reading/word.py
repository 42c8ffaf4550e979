"""Converts Word files to Markdown with python-docx.

python-docx opens the package. The text is read from the XML elements instead: python-docx needs 100
µs for a paragraph, and for merged cells a time that grows with the spans that the file states.
"""

from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any, Final

import docx
from docx.document import Document as WordDocument
from docx.oxml.ns import qn
from docx.text.hyperlink import Hyperlink

from tollgate.core.documents.reading import ReadingTask
from tollgate.reading.archive import check_archive, malformed_faults
from tollgate.reading.opened import OpenedDocument, PartLimit, TextLimit, pages_of_text

# Maximum number of paragraphs, runs and cells in a document; 1,000 printed pages have about
# 150,000.
WORD_PARTS_MAX: Final = 300_000
# Maximum number of columns in a row, and of cells in all rows once merged cells are expanded. Word
# allows 63 columns.
WORD_COLUMNS_MAX: Final = 1_000
WORD_CELLS_MAX: Final = 200_000
_BULLET: Final = "List Bullet"
_NUMBERED: Final = "List Number"
_HEADING: Final = "Heading "
_PARAGRAPH, _RUN, _TABLE = qn("w:p"), qn("w:r"), qn("w:tbl")
_ROW, _CELL, _LINK = qn("w:tr"), qn("w:tc"), qn("w:hyperlink")
_TEXT, _BREAK, _BREAK_KIND = qn("w:t"), qn("w:br"), qn("w:type")
_CHARACTERS: Final[Mapping[str, str]] = {
    qn("w:tab"): "\t",
    qn("w:ptab"): "\t",
    qn("w:cr"): "\n",
    qn("w:noBreakHyphen"): "-",
}
_CELL_SPAN: Final = f"{qn('w:tcPr')}/{qn('w:gridSpan')}"
_CELL_MERGED: Final = f"{qn('w:tcPr')}/{qn('w:vMerge')}"
_STYLE: Final = f"{qn('w:pPr')}/{qn('w:pStyle')}"
_VALUE: Final = qn("w:val")


def open_text(content: bytes, task: ReadingTask) -> OpenedDocument:
    """Return a Word document as one page of Markdown; raise UnreadableDocument."""
    check_archive(content)
    with malformed_faults():
        document = docx.Document(BytesIO(content))
        text = "\n".join(_WordText(document).blocks())
        return pages_of_text([text], document.core_properties.title or "")


class _WordText:
    """The text of one document; each limit applies to all its tables and paragraphs together."""

    def __init__(self, document: WordDocument) -> None:
        self._document = document
        self._styles: Mapping[str, str] = {
            style.style_id: style.name or "" for style in document.styles
        }
        self._text_limit = TextLimit()
        self._cell_limit = PartLimit(WORD_CELLS_MAX)

    def blocks(self) -> Iterator[str]:
        """Yield the Markdown of each paragraph and table."""
        body = self._document.element.body
        parts = PartLimit(WORD_PARTS_MAX)
        for _ in body.iter(_PARAGRAPH, _RUN, _CELL):
            parts.add(1)
        for block in body.iterchildren(_PARAGRAPH, _TABLE):
            if block.tag == _PARAGRAPH:
                yield self._text_limit.add(f"{self._paragraph(block)}\n")
            else:
                yield "\n".join((*self._table(block), ""))

    def _paragraph(self, element: Any) -> str:
        text = "".join(
            _run(part) if part.tag == _RUN else self._link(part)
            for part in element.iterchildren(_RUN, _LINK)
        )
        style = self._styles.get(_value(element.find(_STYLE)), "")
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

    def _link(self, element: Any) -> str:
        text = "".join(map(_run, element.iterchildren(_RUN)))
        url = Hyperlink(element, self._document).url
        return f"[{text}]({url})" if url else text

    def _table(self, element: Any) -> Iterator[str]:
        above: list[str] = []
        for place, row in enumerate(element.iterchildren(_ROW)):
            above = self._row(row, above)
            yield self._text_limit.add(f"| {' | '.join(above)} |")
            if place == 0:
                yield "|" + " --- |" * len(above)

    def _row(self, element: Any, above: list[str]) -> list[str]:
        """Return the cells of a row; a merged cell's text repeats in each row and column."""
        columns = PartLimit(WORD_COLUMNS_MAX)
        texts: list[str] = []
        for cell in element.iterchildren(_CELL):
            span = max(1, int(_value(cell.find(_CELL_SPAN)) or 1))
            columns.add(span)
            self._cell_limit.add(span)
            merged = cell.find(_CELL_MERGED)
            if merged is not None and _value(merged) != "restart" and len(texts) < len(above):
                text = above[len(texts)]
            else:
                text = _cell(cell)
            texts += [text] * span
        return texts


def _cell(element: Any) -> str:
    paragraphs = element.iterchildren(_PARAGRAPH)
    text = "\n".join("".join(map(_run, _runs(paragraph))) for paragraph in paragraphs)
    return text.replace("\n", " ").replace("|", "\\|")


def _runs(element: Any) -> Iterator[Any]:
    """Yield the runs of characters in a paragraph, including those in links."""
    for part in element.iterchildren(_RUN, _LINK):
        if part.tag == _RUN:
            yield part
        else:
            yield from part.iterchildren(_RUN)


def _run(element: Any) -> str:
    return "".join(map(_characters, element))


def _characters(element: Any) -> str:
    if element.tag == _TEXT:
        return element.text or ""
    if element.tag == _BREAK:
        # Page and column breaks are left out.
        return "\n" if element.get(_BREAK_KIND, "textWrapping") == "textWrapping" else ""
    return _CHARACTERS.get(element.tag, "")


def _value(element: Any) -> str:
    """Return the value of an element, or "" if the element or its value is absent."""
    return "" if element is None else element.get(_VALUE, "")
