"""What commands print: tables for people, TSV for pipes, CSV and JSON for whoever asks."""

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import wraps
from typing import Any, Literal, ParamSpec

import click

from tollgate.cli.http import gateway

Style = Literal["auto", "json", "csv"]
Row = Mapping[str, str]
_Params = ParamSpec("_Params")


def calls_gateway(command: Callable[_Params, None]) -> Callable[..., None]:
    """Give a command its gateway as `api` and how to print as `style`."""

    @click.option(
        "--url",
        envvar="TOLLGATE_URL",
        default="http://localhost:8787/api/v1",
        show_default=True,
        show_envvar=True,
        help="Base URL of the gateway.",
    )
    @click.option("--json", "style", flag_value="json", help="Print JSON.")
    @click.option("--csv", "style", flag_value="csv", help="Print CSV.")
    @click.option("--auto", "style", flag_value="auto", default="auto", hidden=True)
    # Hidden, and left to the environment: a command line is kept in the history of a shell.
    @click.option("--secret", envvar="TOLLGATE_KEY", hidden=True)
    @wraps(command)
    def called(*args: _Params.args, **kwargs: _Params.kwargs) -> None:
        url, secret = kwargs.pop("url"), kwargs.pop("secret")
        kwargs["api"] = gateway(str(url), None if secret is None else str(secret))
        command(*args, **kwargs)

    return called


def show(rows: Iterable[Row], columns: Sequence[str], style: Style, *, data: object = None) -> None:
    """Print rows under these columns; `data` is what JSON has instead, where it has more."""
    listed = list(rows)
    if style == "json":
        click.echo(as_json(listed if data is None else data))
    elif style == "csv":
        click.echo(_delimited(listed, columns, "excel"), nl=False)
    elif sys.stdout.isatty():
        _table(listed, columns)
    else:
        click.echo(_delimited(listed, columns, "excel-tab"), nl=False)


def as_json(value: object) -> str:
    """Indented JSON; decimals as the shortest number that is the same."""

    def number(value: object) -> float:
        if isinstance(value, Decimal):
            return float(value)
        raise TypeError(type(value).__name__)

    return json.dumps(value, indent=2, ensure_ascii=False, default=number)


def dollars(amount: Any, places: int = 5) -> str:
    """An amount for people: `$0.31002`."""
    return f"${Decimal(amount):,.{places}f}"


def exact(amount: Any) -> str:
    """An amount for programs: every digit, no exponent."""
    text = f"{Decimal(amount):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _delimited(rows: Iterable[Row], columns: Sequence[str], dialect: str) -> str:
    written = io.StringIO()
    writer = csv.DictWriter(
        written, columns, dialect=dialect, lineterminator="\n", extrasaction="ignore"
    )
    writer.writeheader()
    writer.writerows(rows)
    return written.getvalue()


def _table(rows: Sequence[Row], columns: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        figures = all(_is_figure(row[column]) for row in rows)
        table.add_column(column, justify="right" if figures and rows else "left", no_wrap=True)
    for row in rows:
        # Names are the caller's own: none of them may colour or break the table.
        table.add_row(*(_plain(row[column]) for column in columns))
    Console(highlight=False, markup=False).print(table)


def _plain(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)


def _is_figure(text: str) -> bool:
    return text.lstrip("$-").replace(",", "").replace(".", "").isdigit() or not text
