"""Rows as a Markdown table that is also readable in a terminal."""

from collections.abc import Sequence

from bench.figures import Row

_HEADINGS = ("figure", "floor", "pass-through", "ours", "ratio", "target", "")
_VERDICTS = {True: "met", False: "MISSED", None: ""}


def format_table(rows: Sequence[Row]) -> str:
    """Return the rows under their headings, with every column as wide as its widest cell."""
    cells = [
        (
            row.figure,
            row.floor,
            row.passthrough,
            row.ours,
            row.ratio,
            row.target,
            _VERDICTS[row.met],
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *cells, strict=True)]
    rule = tuple("-" * width for width in widths)
    return "\n".join(_line(line, widths) for line in (_HEADINGS, rule, *cells))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"
