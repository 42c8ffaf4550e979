"""Replies in the form of CSV tables, requested with `Accept: text/csv` or `?format=csv`."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from fastapi import Header, Query
from starlette.responses import Response

from tollgate.core.csv_cell import csv_cell

Format = Literal["json", "csv"]
# What a route with both formats adds to its responses in the OpenAPI document.
OR_CSV: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"text/csv": {"schema": {"type": "string"}}}}
}


async def wanted_format(
    format_: Annotated[Format | None, Query(alias="format")] = None,
    accept: Annotated[str | None, Header()] = None,
) -> Format:
    """Return the requested format, taken from the query's `format` or else from the start of
    `Accept`.
    """
    if format_ is not None:
        return format_
    return "csv" if accept is not None and accept.startswith("text/csv") else "json"


def csv_reply(
    columns: Iterable[str],
    rows: Iterable[Mapping[str, str]],
    *,
    next_: str | None = None,
    unreadable: Sequence[str] = (),
) -> Response:
    """Return rows as a CSV file.

    `next_` is the cursor of the next page, sent as x-next-cursor; `unreadable` names the corrupt
    items that the page skips, sent as x-unreadable.
    """
    written = io.StringIO()
    writer = csv.DictWriter(written, fieldnames=list(columns))
    writer.writeheader()
    for row in rows:
        writer.writerow({name: csv_cell(cell) for name, cell in row.items()})
    headers = {} if next_ is None else {"x-next-cursor": next_}
    if unreadable:
        headers["x-unreadable"] = ", ".join(unreadable)
    return Response(written.getvalue(), media_type="text/csv", headers=headers)
