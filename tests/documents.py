"""Documents for tests, whole and broken: PDFs, files of office programs, web pages."""

import random
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from io import BytesIO

import docx
import openpyxl

_FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"


def pdf_of(objects: Mapping[int, bytes], *, trailer: bytes = b"") -> bytes:
    """Return a PDF with these objects, of which the first is the catalog."""
    content = BytesIO()
    content.write(b"%PDF-1.7\n")
    places = {}
    for number, body in objects.items():
        places[number] = content.tell()
        content.write(b"%d 0 obj\n%b\nendobj\n" % (number, body))
    start = content.tell()
    content.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    for number in sorted(objects):
        content.write(b"%010d 00000 n \n" % places[number])
    content.write(
        b"trailer\n<</Size %d/Root 1 0 R%b>>\nstartxref\n%d\n%%%%EOF\n"
        % (len(objects) + 1, trailer, start)
    )
    return content.getvalue()


def stream(content: bytes, entries: bytes = b"") -> bytes:
    """Return a stream object, compressed."""
    packed = zlib.compress(content)
    return b"<</Length %d/Filter/FlateDecode%b>>\nstream\n%b\nendstream" % (
        len(packed),
        entries,
        packed,
    )


def pdf(
    texts: Iterable[str],
    *,
    trailer: bytes = b"",
    box: str = "0 0 612 792",
    drawn: bytes = b"",
    resources: bytes = b"",
    further: Mapping[int, bytes] | None = None,
) -> bytes:
    """Return a PDF with a page for each text; `drawn` is added to the content of each page.

    Objects of `further` are numbered from 1,000,000 on.
    """
    texts = list(texts)
    kids = b" ".join(b"%d 0 R" % (4 + 2 * place) for place in range(len(texts)))
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R>>",
        2: b"<</Type/Pages/Kids[%b]/Count %d>>" % (kids, len(texts)),
        3: _FONT,
    }
    for place, text in enumerate(texts):
        lines = b"".join(
            b"<%b> Tj 0 -16 Td " % line.encode("latin-1", "replace").hex().encode()
            for line in text.splitlines()
        )
        shown = b"BT /F1 12 Tf 50 740 Td %b ET " % lines if text else b""
        objects[4 + 2 * place] = (
            b"<</Type/Page/Parent 2 0 R/MediaBox[%b]/Resources<</Font<</F1 3 0 R>>%b>>"
            b"/Contents %d 0 R>>" % (box.encode(), resources, 5 + 2 * place)
        )
        objects[5 + 2 * place] = stream(shown + drawn)
    return pdf_of({**objects, **(further or {})}, trailer=trailer)


def scan(pages: int = 1) -> bytes:
    """Return a PDF whose pages are drawn and have no text."""
    return pdf([""] * pages, drawn=b"0 0 0 rg 100 100 300 20 re f 100 200 200 20 re f ")


def noisy_pdf(pages: int) -> bytes:
    """Return a PDF of pages that are noise, as a bad scan is."""
    noise = random.Random(158).randbytes(400 * 400)
    picture = stream(
        noise,
        b"/Type/XObject/Subtype/Image/Width 400/Height 400/ColorSpace/DeviceGray"
        b"/BitsPerComponent 8",
    )
    number = 4 + 2 * pages
    return pdf(
        [""] * pages,
        drawn=b"612 0 0 792 0 0 cm /Im Do ",
        resources=b"/XObject<</Im %d 0 R>>" % number,
        further={number: picture},
    )


def encrypted_pdf() -> bytes:
    """Return a PDF whose password nobody knows."""
    words = b"<" + b"41" * 32 + b">"
    entries = b"/ID[<41><41>]/Encrypt<</Filter/Standard/V 1/R 2/O %b/U %b/P -4>>" % (words, words)
    return pdf(["secret"], trailer=entries)


def bomb_pdf(unpacked_bytes: int) -> bytes:
    """Return a PDF whose page unpacks to so many bytes of operators."""
    return pdf([""], drawn=b"0 0 1 1 re f " * (unpacked_bytes // 13))


def image_bomb_pdf(side: int) -> bytes:
    """Return a PDF with a picture of so many pixels a side, which its file has no bytes for."""
    picture = stream(
        b"",
        b"/Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/DeviceRGB/BitsPerComponent 8"
        % (side, side),
    )
    number = 6
    return pdf(
        [""],
        drawn=b"600 0 0 780 0 0 cm /Im Do ",
        resources=b"/XObject<</Im %d 0 R>>" % number,
        further={number: picture},
    )


def nested_pdf(depth: int) -> bytes:
    """Return a PDF with arrays in arrays."""
    return pdf(["nested"], trailer=b"/Deep 6 0 R", further={6: b"[" * depth + b"]" * depth})


def looped_pdf() -> bytes:
    """Return a PDF whose tree of pages has itself as a branch."""
    return pdf_of(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 1000000>>",
        }
    )


def word(title: str = "Report") -> bytes:
    """Return a text of an office program with a heading, a list, a link and a table."""
    document = docx.Document()
    document.core_properties.title = title
    document.add_heading("Results", level=2)
    document.add_paragraph("All is well.")
    document.add_paragraph("first", style="List Bullet")
    table = document.add_table(rows=2, cols=2)
    for row, cells in enumerate((("plan", "price"), ("small", "$5"))):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    content = BytesIO()
    document.save(content)
    return content.getvalue()


def workbook(rows: Iterable[tuple[object, ...]]) -> bytes:
    """Return a workbook with one sheet of these rows."""
    book = openpyxl.Workbook()
    book.active.title = "Plans"
    for row in rows:
        book.active.append(row)
    content = BytesIO()
    book.save(content)
    return content.getvalue()


def word_of(body: str) -> bytes:
    """Return a text of an office program with these elements of WordprocessingML (`w:`)."""
    namespace = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    content = f'<w:document xmlns:w="{namespace}"><w:body>{body}</w:body></w:document>'
    return repacked(word(), "word/document.xml", content.encode())


def workbook_of(rows: str) -> bytes:
    """Return a workbook with one sheet of these elements of SpreadsheetML."""
    namespace = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    content = f'<worksheet xmlns="{namespace}"><sheetData>{rows}</sheetData></worksheet>'
    return repacked(workbook([("a",)]), "xl/worksheets/sheet1.xml", content.encode())


def repacked(archive: bytes, name: str, content: bytes) -> bytes:
    """Return an archive with another content of one entry."""
    made = BytesIO()
    with (
        zipfile.ZipFile(BytesIO(archive)) as source,
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for entry in source.infolist():
            target.writestr(entry, content if entry.filename == name else source.read(entry))
    return made.getvalue()
