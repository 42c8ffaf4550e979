"""Exports closed days as tables in gzipped CSV files, by workspace and day.

A file has the same columns as the table in the API. Exporting a day again writes files with the
same names, so they replace earlier ones.
"""

import csv
import gzip
import io
import logging
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct
from pydantic import BaseModel

from tollgate.core.csv_cell import csv_cell
from tollgate.core.errors import ErrorCode, LedgerError
from tollgate.core.records.activity import ClosedDay
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.ports.administration import ActivityStore
from tollgate.web.http.csv_columns import csv_cells, csv_columns
from tollgate.web.records.activity_shapes import ActivityObject
from tollgate.web.records.generation_shapes import GenerationObject

_log = logging.getLogger(__name__)

# Maximum number of rows in a file, which takes a few megabytes of memory. A day with a million
# generations has 20 files.
FILE_ROWS: Final = 50_000


class ExportedDay(Struct, frozen=True, kw_only=True):
    """The files of one day of one workspace."""

    workspace_id: str
    day: str
    generations: int
    files: tuple[str, ...]


class DaysToExport(Protocol):
    """The closed days of all workspaces, and the store for their files."""

    async def workspaces(self) -> Sequence[str]:
        """Return the ids of all workspaces."""

    async def find_due(self, workspace_id: str) -> Sequence[ClosedDay]:
        """Return the closed days of the last three weeks without an export, oldest first."""

    def records(self, day: ClosedDay) -> AsyncIterator[GenerationRecord]:
        """Yield the records of a day, with one page in memory at a time."""

    async def put(self, name: str, content: bytes) -> None:
        """Store a file of an export, replacing any file with that name."""

    async def note_exported(self, day: ClosedDay) -> None:
        """Record that a day is exported."""


class DayExport:
    """Writes the tables `generations` and `activity` of closed days."""

    def __init__(
        self, days: DaysToExport, activity: ActivityStore, *, file_rows: int = FILE_ROWS
    ) -> None:
        self._days = days
        self._activity = activity
        self._file_rows = file_rows

    async def export_due(self) -> int:
        """Export the closed days that are not exported yet, and return their number.

        A day that fails remains due; after all others are exported, a LedgerError names the days
        that failed.
        """
        count, left = 0, list[str]()
        for workspace_id in await self._days.workspaces():
            for day in await self._days.find_due(workspace_id):
                try:
                    await self.export(day)
                except LedgerError as failed:
                    _log.error("a day could not be exported: %s", failed.message)
                    left.append(f"{workspace_id} {day.day}")
                else:
                    count += 1
        if left:
            raise LedgerError(
                ErrorCode.SERVICE_UNAVAILABLE,
                f"Days that could not be exported: {', '.join(left)}.",
            )
        return count

    async def export(self, day: ClosedDay) -> ExportedDay:
        """Write the files of a day, and record that the day is exported.

        Raises LedgerError if the files cannot be written, or if records of the day have expired;
        the files of an earlier export then stay.
        """
        if day.exported:
            left = 0
            async for _ in self._days.records(day):
                left += 1
            self._check_number(day, left)
        files = list[str]()
        if day.requests:
            number, generations = 0, self._generations(day)
            async for name, rows in self._write("generations", day, GenerationObject, generations):
                files.append(name)
                number += rows
            self._check_number(day, number)
            async for name, _ in self._write("activity", day, ActivityObject, self._sums(day)):
                files.append(name)
        await self._days.note_exported(day)
        return ExportedDay(
            workspace_id=day.workspace_id, day=day.day, generations=day.requests, files=tuple(files)
        )

    def _check_number(self, day: ClosedDay, number: int) -> None:
        if number != day.requests:
            raise LedgerError(
                ErrorCode.SERVICE_UNAVAILABLE,
                f"{day.workspace_id} {day.day} had {day.requests} generations, of which {number}"
                " are left.",
            )

    async def _generations(self, day: ClosedDay) -> AsyncIterator[BaseModel]:
        async for record in self._days.records(day):
            yield GenerationObject.of(record)

    async def _sums(self, day: ClosedDay) -> AsyncIterator[BaseModel]:
        found = await self._activity.read(day.workspace_id, day.start_s, day.start_s + 1)
        async for row in found.rows:
            yield ActivityObject.of(row)

    async def _write(
        self, table: str, day: ClosedDay, shape: type[BaseModel], shown: AsyncIterable[BaseModel]
    ) -> AsyncIterator[tuple[str, int]]:
        """Write a table; yield the name and the number of rows of each file."""
        columns, number = csv_columns(shape), 0
        file = _TableFile(columns)
        async for row in shown:
            file.add(csv_cells(row))
            if file.rows == self._file_rows:
                yield await self._put(table, day, number, file)
                number, file = number + 1, _TableFile(columns)
        if file.rows or number == 0:
            yield await self._put(table, day, number, file)

    async def _put(
        self, table: str, day: ClosedDay, number: int, file: "_TableFile"
    ) -> tuple[str, int]:
        name = f"{folder_of(table, day)}/{number:05d}.csv.gz"
        await self._days.put(name, file.close())
        return name, file.rows


class _TableFile:
    """A gzipped CSV file in memory; equal rows result in equal bytes."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.rows = 0
        self._content = io.BytesIO()
        self._packed = gzip.GzipFile(fileobj=self._content, mode="wb", mtime=0)
        self._text = io.TextIOWrapper(self._packed, encoding="utf-8", newline="")
        self._writer = csv.DictWriter(self._text, fieldnames=columns)
        self._writer.writeheader()

    def add(self, cells: Mapping[str, str]) -> None:
        """Write a row."""
        self._writer.writerow({name: csv_cell(cell) for name, cell in cells.items()})
        self.rows += 1

    def close(self) -> bytes:
        """Return the whole file."""
        self._text.close()
        return self._content.getvalue()


def folder_of(table: str, day: ClosedDay) -> str:
    """Return the folder for a day's files of a table."""
    return f"exports/{table}/workspace={day.workspace_id}/day={day.day}"
