"""Reader of invoice files: JSON pages of cost APIs, or tables as CSV, compressed or not."""

import gzip
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Final, cast

from msgspec import Struct

from tollgate.cli.invoices.csv_tables import NO_PRINCIPALS, read_csv_table
from tollgate.cli.invoices.json_pages import read_json_page
from tollgate.cli.invoices.lines import InvoiceLine, InvoiceRefused, sum_lines

_JSON_BYTES_MAX: Final = 64 * 1024 * 1024
_GZIP: Final = b"\x1f\x8b"


class Invoices(Struct, frozen=True):
    """The lines of several files, summed by day and name, and the detected kind of each file."""

    lines: list[InvoiceLine]
    kinds: Mapping[Path, str]


def read_invoices(paths: Sequence[Path], *, by_principal: bool = False) -> Invoices:
    """Read all files; raise InvoiceRefused on errors.

    With `by_principal`, lines for other usage with a principal are included, and files without
    principals are refused.
    """
    lines: list[InvoiceLine] = []
    kinds: dict[Path, str] = {}
    for path in paths:
        try:
            kinds[path], found = _read(path, alone=len(paths) == 1, by_principal=by_principal)
        except InvoiceRefused as refused:
            raise InvoiceRefused(f"{path}: {refused}") from refused
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise InvoiceRefused(f"{path} cannot be read: {wrong!r}.") from wrong
        lines += found
    return Invoices(sum_lines(lines), kinds)


def _read(path: Path, *, alone: bool, by_principal: bool) -> tuple[str, list[InvoiceLine]]:
    with path.open("rb") as plain:
        packed = plain.read(len(_GZIP)) == _GZIP
        plain.seek(0)
        content = cast(IO[bytes], gzip.GzipFile(fileobj=plain)) if packed else plain
        first = content.read(1)
        while first.isspace():
            first = content.read(1)
        content.seek(0)
        if first not in (b"{", b"["):
            with TextIOWrapper(content, encoding="utf-8-sig", newline="") as text:
                kind, lines = read_csv_table(text, by_principal=by_principal)
                return kind, sum_lines(lines)
        if by_principal:
            raise InvoiceRefused(NO_PRINCIPALS)
        document = content.read(_JSON_BYTES_MAX + 1)
    if len(document) > _JSON_BYTES_MAX:
        raise InvoiceRefused(f"A report has at most {_JSON_BYTES_MAX // 1024**2} MB.")
    return read_json_page(json.loads(document, parse_float=Decimal), alone=alone)
