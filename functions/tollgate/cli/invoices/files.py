"""Reading of invoice files, whose content tells the format."""

import gzip
import json
from collections.abc import Sequence
from decimal import Decimal
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Final, cast

from tollgate.cli.invoices.json_pages import read_json_page
from tollgate.cli.invoices.lines import InvoiceLine, InvoiceRefused, sum_lines
from tollgate.cli.invoices.usage_csv import read_usage_csv

_JSON_BYTES_MAX: Final = 64 * 1024 * 1024
_GZIP: Final = b"\x1f\x8b"


def read_invoices(paths: Sequence[Path]) -> list[InvoiceLine]:
    """Return the sums of all files by day and name; raise InvoiceRefused, naming the file."""
    lines: list[InvoiceLine] = []
    for path in paths:
        try:
            lines += _read(path, alone=len(paths) == 1)
        except InvoiceRefused as refused:
            raise InvoiceRefused(f"{path}: {refused}") from refused
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise InvoiceRefused(f"{path} cannot be read: {wrong!r}.") from wrong
    return sum_lines(lines)


def _read(path: Path, *, alone: bool) -> list[InvoiceLine]:
    with path.open("rb") as plain:
        packed = plain.read(len(_GZIP)) == _GZIP
        plain.seek(0)
        content = cast(IO[bytes], gzip.GzipFile(fileobj=plain)) if packed else plain
        first = content.read(1)
        while first.isspace():
            first = content.read(1)
        content.seek(0)
        if first not in (b"{", b"["):
            text = TextIOWrapper(content, encoding="utf-8-sig", newline="")
            return sum_lines(read_usage_csv(text))
        whole = content.read(_JSON_BYTES_MAX + 1)
    if len(whole) > _JSON_BYTES_MAX:
        raise InvoiceRefused(f"A report has at most {_JSON_BYTES_MAX // 1024**2} MB.")
    return list(read_json_page(json.loads(whole, parse_float=Decimal), alone=alone))
