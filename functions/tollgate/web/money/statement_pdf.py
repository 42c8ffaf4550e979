"""A statement as a PDF, whose figures are aligned in a font of fixed width.

The text of a page is drawn with the standard font Courier (ISO 32000-1, 9.6.2.2), which every
reader has. The file is pure ASCII, so API Gateway passes it on as text, like CSV. Libraries for PDF
bring fonts and images, and give each file a new id; here, equal statements are equal files.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from textwrap import wrap
from typing import Final

from tollgate.core.money.statement import Statement
from tollgate.web.money.statement_tables import (
    FIGURES,
    GROUPS,
    TOTAL,
    closing_rows,
    line_figures,
    line_names,
    opening_rows,
    statement_remarks,
    statement_terms,
    statement_title,
)

# A4 in landscape, in points.
_WIDTH: Final = 842
_HEIGHT: Final = 595
_MARGIN: Final = 36
# Every character of Courier is 0.6 times as wide as its size.
_CHARACTER: Final = 0.6
_SIZE_MAX: Final = 9.0
_LINE_HEIGHT: Final = 1.25
# Characters in a line at the largest size.
_LINE_MAX: Final = int((_WIDTH - 2 * _MARGIN) / (_CHARACTER * _SIZE_MAX))
_PAGE_LINES: Final = int((_HEIGHT - 2 * _MARGIN) / (_SIZE_MAX * _LINE_HEIGHT)) - 2
_NAME_WIDTH_MAX: Final = 32
_GAP: Final = "  "


def statement_pdf(statement: Statement) -> bytes:
    """Return a statement as a PDF; equal statements have equal bytes."""
    title = statement_title(statement)
    intro = [title, "", statement_terms(statement)]
    for remark in statement_remarks(statement):
        intro += wrap(remark, _LINE_MAX, break_on_hyphens=False)
    intro.append("")
    intro += [*_balance_table(statement), ""]
    if not statement.lines:
        return _write(title, statement.made_s, _pages([*intro, "No usage."], (), []))
    rows = [(line_names(line), line_figures((line,))) for line in statement.lines]
    rows.append((TOTAL, line_figures(statement.lines)))
    head, *lines = _usage_table(rows)
    return _write(title, statement.made_s, _pages(intro, (head, "-" * len(head)), lines))


def _balance_table(statement: Statement) -> Iterator[str]:
    rows = [*opening_rows(statement), *closing_rows(statement)]
    width = max(len(amount) for _, amount in rows)
    for name, amount in rows:
        yield f"{name:<20}{amount:>{width}}"


def _usage_table(rows: Sequence[tuple[tuple[str, ...], tuple[str, ...]]]) -> Iterator[str]:
    """Yield the aligned lines of a table, with the head first; a long name takes several lines."""
    table = [
        (tuple(map(_ascii, row_names)), row_figures)
        for row_names, row_figures in ((GROUPS, FIGURES), *rows)
    ]
    names = [
        min(_NAME_WIDTH_MAX, max(map(len, cells)))
        for cells in zip(*(n for n, _ in table), strict=True)
    ]
    figures = [max(map(len, cells)) for cells in zip(*(f for _, f in table), strict=True)]
    for row_names, row_figures in table:
        parts = [_split(name, width) for name, width in zip(row_names, names, strict=True)]
        for number, pieces in enumerate(zip_longest(*parts, fillvalue="")):
            cells = [f"{piece:<{width}}" for piece, width in zip(pieces, names, strict=True)]
            if number == 0:
                cells += [
                    f"{figure:>{width}}" for figure, width in zip(row_figures, figures, strict=True)
                ]
            yield _GAP.join(cells)


def _split(name: str, width: int) -> list[str]:
    return [name[start : start + width] for start in range(0, len(name), width)] or [""]


def _ascii(text: str) -> str:
    """Return a text in ASCII; other characters are escaped, because Courier lacks most of them."""
    dashed = text.replace("–", "-")
    shown = "".join(each if each.isprintable() else "?" for each in dashed)
    return shown.encode("ascii", "backslashreplace").decode()


def _pages(intro: list[str], head: Sequence[str], lines: Sequence[str]) -> list[list[str]]:
    """Divide the lines into pages; each page with lines of a table begins with the table's head."""
    pages: list[list[str]] = [[*intro, *head]]
    for line in lines:
        if len(pages[-1]) >= _PAGE_LINES:
            pages.append([*head])
        pages[-1].append(line)
    return pages


def _write(title: str, made_s: int, pages: Sequence[Sequence[str]]) -> bytes:
    """Return a PDF with a font, the pages and the title (ISO 32000-1, 7.5)."""
    longest = max(len(_ascii(line)) for page in pages for line in page)
    size = min(_SIZE_MAX, (_WIDTH - 2 * _MARGIN) / (_CHARACTER * longest))
    made = datetime.fromtimestamp(made_s, UTC)
    kids = " ".join(f"{5 + 2 * number} 0 R" for number in range(len(pages)))
    bodies = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>",
        f"<< /Title ({_quoted(title)}) /CreationDate (D:{made:%Y%m%d%H%M%S}Z) >>",
    ]
    for number, page in enumerate(pages, start=1):
        text = _draw([*page, *[""] * (_PAGE_LINES - len(page)), f"{number} / {len(pages)}"], size)
        bodies.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {_WIDTH} {_HEIGHT}] "
            f"/Resources << /Font << /F 3 0 R >> >> /Contents {len(bodies) + 2} 0 R >>"
        )
        bodies.append(f"<< /Length {len(text)} >>\nstream\n{text}\nendstream")
    return _file(bodies)


def _draw(lines: Iterable[str], size: float) -> str:
    """Return the operators that draw lines of text from the top of a page."""
    leading = _SIZE_MAX * _LINE_HEIGHT
    top = _HEIGHT - _MARGIN - _SIZE_MAX
    shown = "\n".join(f"({_quoted(line)}) '" for line in lines)
    return f"BT /F {size:.3f} Tf {leading:.3f} TL {_MARGIN} {top + leading:.3f} Td\n{shown}\nET"


def _quoted(text: str) -> str:
    escaped = _ascii(text).replace("\\", "\\\\")
    return escaped.replace("(", "\\(").replace(")", "\\)")


def _file(bodies: Sequence[str]) -> bytes:
    """Return the objects with their table of byte offsets, of which each row has 20 bytes."""
    file, offsets = "%PDF-1.4\n", []
    for number, body in enumerate(bodies, start=1):
        offsets.append(len(file))
        file += f"{number} 0 obj\n{body}\nendobj\n"
    rows = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(bodies) + 1
    file_end = (
        f"trailer\n<< /Size {size} /Root 1 0 R /Info 4 0 R >>\nstartxref\n{len(file)}\n%%EOF\n"
    )
    return f"{file}xref\n0 {size}\n0000000000 65535 f \n{rows}{file_end}".encode("ascii")
