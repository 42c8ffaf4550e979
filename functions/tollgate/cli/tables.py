"""Output of commands: a table on a terminal, TSV in a pipe, and CSV or JSON if an option requests
it.
"""

import csv
import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from tollgate.core.csv_cell import csv_cell

if TYPE_CHECKING:
    from pydantic import BaseModel

# Imports and returns the model of a reply's objects, which only CSV needs.
Shape = Callable[[], "type[BaseModel]"]
OutputStyle = Literal["auto", "json", "csv"]
TableRow = Mapping[str, str]
_GAP: Final = 2
_DIGITS: Final = 4
_PLACES_MIN: Final = 2
_PLACES_MAX: Final = 6
_MOMENT: Final = re.compile(r"\d{4}-(\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z", re.ASCII)


def show(
    rows: Iterable[TableRow],
    columns: Sequence[str],
    style: OutputStyle,
    *,
    amounts: Sequence[str] = (),
    data: object = None,
    shape: Shape | None = None,
) -> None:
    """Print rows; a narrow terminal omits the last columns.

    A terminal shows the columns in `amounts` as rounded dollars; a pipe gets every digit. If `data`
    is given, JSON output has `data` instead of the rows. CSV output also has `data` if `shape`
    returns the model of its objects.
    """
    listed = list(rows)
    if style == "csv" and shape is not None and isinstance(data, list):
        # Importing pydantic takes longer than importing a command, and only CSV needs it.
        from tollgate.web.http.csv_columns import cell_text, csv_columns

        columns = csv_columns(shape())
        listed = [{name: cell_text(item[name]) for name in columns} for item in data]
    if style == "json":
        click.echo(as_json(listed if data is None else data))
    elif style == "csv":
        safe = ({name: csv_cell(cell) for name, cell in row.items()} for row in listed)
        click.echo(_delimited(safe, columns, "excel"), nl=False)
    elif sys.stdout.isatty():
        rounded = {name: round_together([row[name] for row in listed]) for name in amounts}
        _table(
            [
                {**row, **{name: rounded[name][place] for name in amounts}}
                for place, row in enumerate(listed)
            ],
            columns,
        )
    else:
        click.echo(_delimited(listed, columns, "excel-tab"), nl=False)
    if style == "auto" and not listed:
        click.echo("Nothing found.", err=True)


def show_one(
    row: TableRow, columns: Sequence[str], style: OutputStyle, *, data: object, shape: Shape
) -> None:
    """Print a row like `show`, but on a terminal with each non-empty column on its own line."""
    if style == "auto" and sys.stdout.isatty():
        width = max(map(len, columns))
        for column in columns:
            if row[column]:
                click.echo(f"{column:<{width}}  {_plain(row[column])}")
    else:
        show([row], columns, style, data=[data] if style == "csv" else data, shape=shape)


class GrowingTable:
    """A table that prints each row immediately: in columns of fixed width on a terminal, or as TSV
    in a pipe.
    """

    def __init__(self, widths: Mapping[str, int]) -> None:
        self._aligned = sys.stdout.isatty()
        spaces = {name: [" " * width] for name, width in widths.items()}
        shown = _fitting(spaces, get_terminal_size().columns) if self._aligned else [*widths]
        self._widths = {name: widths[name] for name in shown}
        head = self._line({name: name for name in shown})
        click.echo(click.style(head, bold=True) if self._aligned else head)

    def add(self, row: TableRow) -> None:
        """Print a row; a cell that is too wide moves later cells to the right."""
        click.echo(self._line(row))

    def _line(self, row: TableRow) -> str:
        if not self._aligned:
            return "\t".join(_plain(row[name], shorten=False) for name in self._widths)
        cells = (_plain(row[name]).ljust(width) for name, width in self._widths.items())
        return (" " * _GAP).join(cells).rstrip()


def as_json(value: object, indent: int | None = 2) -> str:
    """Return a value as JSON, on one line if `indent` is None; decimals become floats."""

    def number(value: object) -> float:
        if isinstance(value, Decimal):
            return float(value)
        raise TypeError(type(value).__name__)

    return json.dumps(value, indent=indent, ensure_ascii=False, default=number)


def dollars(amount: Any, places: int = 5) -> str:
    """Return an unrounded amount such as `$0.31002`, with at least `places` decimals."""
    value = Decimal(amount)
    if not value:
        return "$0"
    whole, _, part = f"{value:,f}".partition(".")
    return f"${whole}.{part.rstrip('0').ljust(places, '0')}"


def round_together(amounts: Sequence[str]) -> list[str]:
    """Return the amounts of a column in dollars with equally many decimals.

    The largest amount keeps four significant digits, and every amount keeps 2 to 6 decimals. An
    amount that would round to zero is shown as less than the smallest amount that is shown.
    """
    values = [Decimal(amount) for amount in amounts]
    largest = max(map(abs, values), default=Decimal(0))
    magnitude = largest.adjusted() if largest else 0
    places = min(max(_PLACES_MIN, _DIGITS - 1 - magnitude), _PLACES_MAX)
    smallest = Decimal(1).scaleb(-places)
    return [
        f"<{smallest}" if 0 < value < smallest / 2 else f"{value:,.{places}f}" for value in values
    ]


def exact(amount: Any) -> str:
    """Return an amount for programs: all digits, without an exponent."""
    text = f"{Decimal(amount):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _delimited(rows: Iterable[TableRow], columns: Sequence[str], dialect: str) -> str:
    written = io.StringIO()
    writer = csv.DictWriter(
        written, columns, dialect=dialect, lineterminator="\n", extrasaction="ignore"
    )
    writer.writeheader()
    writer.writerows(rows)
    return written.getvalue()


def _table(rows: Sequence[TableRow], columns: Sequence[str]) -> None:
    # Importing rich takes longer than importing a command, and only a terminal gets a table.
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False)
    cells = {column: [_plain(row[column]) for row in rows] for column in columns}
    shown = _fitting(cells, console.width)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in shown:
        figures = rows and all(map(_is_figure, cells[column]))
        table.add_column(column, justify="right" if figures else "left", no_wrap=True)
    for line in zip(*(cells[column] for column in shown), strict=True):
        table.add_row(*line)
    console.print(table)
    if hidden := columns[len(shown) :]:
        click.echo(
            f"A wider terminal shows {', '.join(hidden)} too; --json shows all columns.", err=True
        )


def _fitting(cells: Mapping[str, Sequence[str]], width: int) -> list[str]:
    """Return the first columns that fit the width, but at least one column."""
    shown: list[str] = []
    for column, texts in cells.items():
        width -= max(map(len, (column, *texts))) + (_GAP if shown else 0)
        if width < 0 and shown:
            break
        shown.append(column)
    return shown


def _plain(text: str, *, shorten: bool = True) -> str:
    """Return text with `?` for control characters, and with shortened timestamps."""
    text = _MOMENT.sub(r"\1 \2", text) if shorten else text
    return "".join(character if character.isprintable() else "?" for character in text)


def _is_figure(text: str) -> bool:
    return text.lstrip("<$-").replace(",", "").replace(".", "").isdigit() or not text
