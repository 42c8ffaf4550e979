"""Tables as CSV, for whoever asks for it by `Accept` or by `?format=csv`."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from fastapi import Header, Query
from starlette.responses import Response

from tollgate.core.csv_cell import csv_cell

Format = Literal["json", "csv"]
# What a route that answers either way adds to its place in the document.
OR_CSV: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"text/csv": {"schema": {"type": "string"}}}}
}


async def wanted_format(
    format_: Annotated[Format | None, Query(alias="format")] = None,
    accept: Annotated[str | None, Header()] = None,
) -> Format:
    """CSV if it is asked for, JSON otherwise."""
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
    """The table as a file; headers say where it goes on and what it leaves out, if anything."""
    written = io.StringIO()
    writer = csv.DictWriter(written, fieldnames=list(columns))
    writer.writeheader()
    for row in rows:
        writer.writerow({name: csv_cell(cell) for name, cell in row.items()})
    headers = {} if next_ is None else {"x-next-cursor": next_}
    if unreadable:
        headers["x-unreadable"] = ", ".join(unreadable)
    return Response(written.getvalue(), media_type="text/csv", headers=headers)
