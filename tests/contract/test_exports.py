"""Exports of closed days: whole, in parts, the same when repeated, and bounded in memory.

Keeps C67.
"""

import csv
import gc
import gzip
import io
import tracemalloc
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from msgspec.structs import replace

from tests.contract.test_activity import MIDNIGHT_S, generated
from tests.stores import TESTER, DynamoStores, funded_key
from tests.unit.ingress.samples import RECORD
from tollgate.aws.failures import StoreUnavailable
from tollgate.aws.objects import FolderObjects, ObjectStore
from tollgate.core.clock import DAY_S
from tollgate.core.errors import LedgerError
from tollgate.core.pages import Page
from tollgate.core.records.activity import ActivityRow, ActivityStream, ClosedDay, GenerationFilter
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.aws.tables import Tables
from tollgate.stores.records.closed_days import ClosedDays
from tollgate.web.http.csv_columns import csv_columns
from tollgate.web.records.day_export import DayExport
from tollgate.web.records.generation_shapes import GenerationObject

YESTERDAY_S = MIDNIGHT_S - DAY_S


def table(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(gzip.decompress(content).decode(), newline="")))


def files_in(folder: Path) -> dict[str, bytes]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def export_of(dynamo: DynamoStores, objects: ObjectStore, rows: int = 2) -> DayExport:
    return DayExport(closed_days(dynamo, objects), dynamo.activity, file_rows=rows)


def closed_days(dynamo: DynamoStores, objects: ObjectStore) -> ClosedDays:
    client, tables = dynamo.client, dynamo.tables
    return ClosedDays(client, tables, dynamo.generations, objects, clock=dynamo.clock)


async def closed_day(dynamo: DynamoStores, costs: Sequence[int]) -> list[GenerationRecord]:
    """Generations of yesterday, a closed day."""
    _, principal = await funded_key(dynamo, 10**6)
    await dynamo.workspaces.ensure("acme", by=TESTER)
    made = [
        await generated(dynamo, principal, YESTERDAY_S + number, cost, user="=cmd()")
        for number, cost in enumerate(costs)
    ]
    dynamo.clock.now = MIDNIGHT_S + 7_200
    await dynamo.activity.close_due()
    return made


async def test_c67_a_closed_day_is_exported_once_in_parts(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    made = await closed_day(dynamo, (3, 4, 5))
    export = export_of(dynamo, FolderObjects(tmp_path))
    assert await export.export_due() > 0
    written = files_in(tmp_path)
    place = "workspace=acme/day=2026-11-20"
    assert list(written) == [
        f"exports/activity/{place}/00000.csv.gz",
        f"exports/generations/{place}/00000.csv.gz",
        f"exports/generations/{place}/00001.csv.gz",
    ]
    activity, first, second = map(table, written.values())
    rows = [*first, *second]
    assert list(rows[0]) == list(csv_columns(GenerationObject))
    assert [row["id"] for row in rows] == [f"gen-{record.id}" for record in reversed(made)]
    assert [row["total_cost"] for row in rows] == ["0.000000005", "0.000000004", "0.000000003"]
    assert {row["external_user"] for row in rows} == {"'=cmd()"}
    assert [(row["requests"], row["usage"]) for row in activity] == [("3", "0.000000012")]

    assert await export.export_due() == 0
    day = await closed_days(dynamo, FolderObjects(tmp_path)).get("acme", YESTERDAY_S)
    assert day is not None
    assert day.exported
    done = await export.export(day)
    assert (done.generations, set(done.files)) == (3, set(written))
    assert files_in(tmp_path) == written, "the same rows are the same bytes"


async def test_what_fails_stays_due(dynamo: DynamoStores, tmp_path: Path) -> None:
    class Away(FolderObjects):
        async def put(self, key: str, body: bytes) -> None:
            raise StoreUnavailable("no bucket", maybe_applied=True)

    await closed_day(dynamo, (3, 4, 5))
    with pytest.raises(LedgerError, match="acme 2026-11-20"):
        await export_of(dynamo, Away(tmp_path)).export_due()
    assert await export_of(dynamo, FolderObjects(tmp_path)).export_due() > 0


async def test_a_day_whose_records_expire_keeps_the_tables_that_it_has(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    made = await closed_day(dynamo, (3, 4, 5))
    export = export_of(dynamo, FolderObjects(tmp_path), rows=9)
    await export.export_due()
    written = files_in(tmp_path)
    await dynamo.forget("generations", "W#acme#20261120", f"G#{made[0].id}")
    day = await closed_days(dynamo, FolderObjects(tmp_path)).get("acme", YESTERDAY_S)
    assert day is not None
    with pytest.raises(LedgerError, match="3 generations, of which 2 are left"):
        await export.export(day)
    assert files_in(tmp_path) == written


async def test_c67_an_export_lands_in_a_bucket_under_its_name(
    dynamo: DynamoStores, objects: ObjectStore
) -> None:
    await closed_day(dynamo, (3,))
    await export_of(dynamo, objects).export_due()
    content = await objects.get("exports/generations/workspace=acme/day=2026-11-20/00000.csv.gz")
    assert content is not None
    assert len(table(content)) == 1


async def no_rows() -> AsyncGenerator[ActivityRow, None]:
    for row in ():
        yield row


@pytest.mark.nightly
async def test_a_day_of_many_generations_is_never_in_memory_at_once(tmp_path: Path) -> None:
    count, file_rows = 4_000, 500

    class Many:
        """Ever new records, a page at a time."""

        async def page(
            self, workspace_id: str, wanted: GenerationFilter, *, limit: int, before: str | None
        ) -> Page[GenerationRecord]:
            start = int(before or 0)
            found = tuple(replace(RECORD, user=f"{start + it}") for it in range(limit))
            after = start + limit
            return Page(found=found, next=None if after >= count else str(after))

    class Weighed(FolderObjects):
        """Weighs what is in memory when a file is whole."""

        held: ClassVar[list[int]] = []

        async def put(self, key: str, body: bytes) -> None:
            # What other tests of this process left behind delays the collection of garbage.
            gc.collect()
            self.held.append(tracemalloc.get_traced_memory()[0])
            await super().put(key, body)

    class Days(ClosedDays):
        async def note_exported(self, day: ClosedDay) -> None:
            return

    class NoSums:
        async def read(self, *_: object) -> object:
            return ActivityStream(rows=no_rows())

    tables = Tables(core="", ledger="", generations="")
    days = Days(None, tables, Many(), Weighed(tmp_path), clock=None)
    export = DayExport(days, NoSums(), file_rows=file_rows)
    day = ClosedDay(
        workspace_id="acme",
        day="2026-11-20",
        start_s=YESTERDAY_S,
        cost_nano_usd=0,
        requests=count,
    )
    tracemalloc.start()
    try:
        done = await export.export(day)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        whole = [replace(RECORD, user=f"{it}") for it in range(count)]
        in_all = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert (done.generations, len(whole)) == (count, count)
    assert len(done.files) == len(Weighed.held) == 1 + count // file_rows
    # The rows of a file, and a page of records; more of neither at the last file than at the first.
    assert max(Weighed.held) < in_all / 2
