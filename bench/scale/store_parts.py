"""The parts of `make scale` that measure what grows with the tables."""

import gc
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace
from tests.contract.test_workspaces import maintenance
from tests.stores import DynamoStores
from tests.unit.stores.records.test_generations import USUAL

from bench.scale.counted import CountedStore
from bench.scale.deployments import (
    NOW_S,
    TODAY_S,
    Places,
    Template,
    copy_template,
    key_name,
    stores_on,
    workspace_name,
)
from bench.scale.generated import GeneratedRows
from bench.scale.measure import Operation, Point, measure_operations
from bench.scale.records import RecordRows
from tollgate.core.clock import DAY_S
from tollgate.core.money.statement import Month
from tollgate.core.records.activity import GenerationFilter
from tollgate.core.records.audit import AuditFilter
from tollgate.stores.aws.items import AnyItem
from tollgate.stores.rules.periods import day_name
from tollgate.web.records.activity_routes import ReplyPage, list_rows, sum_groups

TEN_THOUSAND: Final = (1, 10, 100, 1_000, 10_000)
RECORDS: Final = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
_WORKSPACE = workspace_name(0)
# Larger sizes take minutes, and each record costs the same as in smaller ones.
_READ_WHOLE_MAX: Final = {"roll-up of the day": 1_000_000, "audit": 1_000_000}
# Measuring memory at larger sizes takes minutes.
_MEMORY_MAX: Final = 1_000
_RECORDS_MEMORY_MAX: Final = 10_000
_YESTERDAY_S = TODAY_S
_MONTH = Month(name="2026-11", since_s=1_793_491_200, until_s=1_796_083_200)


async def measure_keys(template: Template) -> AsyncIterator[Sequence[Point]]:
    """Yield the costs for each number of keys in one workspace."""
    since_s, until_s = _MONTH.since_s, int(NOW_S)
    operations: dict[str, Operation] = {
        "authenticate a key": lambda stores: stores.keys.authenticate(template.secret),
        "page of 100 keys": lambda stores: stores.keys.list(_WORKSPACE, limit=100),
        "page of 100 teams": lambda stores: stores.teams.list(_WORKSPACE, limit=100),
        "page of 100 members": lambda stores: stores.members.list(_WORKSPACE, limit=100),
        "key by its name": lambda stores: stores.keys.names(_WORKSPACE),
        "activity of a month, first page": lambda stores: _list_activity(stores, since_s, until_s),
        "`spend` of a month by key": lambda stores: _sum_activity(stores, since_s, until_s, "key"),
        "`spend` of a month by model": lambda stores: _sum_activity(
            stores, since_s, until_s, "model"
        ),
        "statement of a month": lambda stores: stores.statements.statement(_WORKSPACE, _MONTH),
        "page of the audit log": lambda stores: stores.audit_log.page(
            _WORKSPACE, AuditFilter(since_s=since_s, until_s=until_s), limit=100
        ),
        **_UPKEEP,
    }
    for keys in TEN_THOUSAND:
        yield await _measure(template, copy_template(template, keys=keys), operations, size=keys)


async def _list_activity(stores: DynamoStores, since_s: int, until_s: int) -> None:
    """Read all rows of a month, as the first page of activity does for the total."""
    page = ReplyPage(())
    found = await stores.activity.read(_WORKSPACE, since_s, until_s)
    await list_rows(found, GenerationFilter(since_s=since_s, until_s=until_s), page, is_first=True)


async def _sum_activity(stores: DynamoStores, since_s: int, until_s: int, by: str) -> None:
    page = ReplyPage((by,))
    found = await stores.activity.read(_WORKSPACE, since_s, until_s)
    await sum_groups(found, GenerationFilter(since_s=since_s, until_s=until_s), page, ())


async def measure_workspaces(template: Template) -> AsyncIterator[Sequence[Point]]:
    """Yield the costs for each number of workspaces with one key each."""
    operations: dict[str, Operation] = {
        "page of 100 workspaces": lambda stores: stores.workspaces.list(limit=100),
        "roll-up with nothing due": lambda stores: stores.activity.close_due(),
        **_UPKEEP,
    }
    for count in TEN_THOUSAND:
        rows = copy_template(template, workspaces=count)
        yield await _measure(template, rows, operations, size=count)


async def measure_records(template: Template) -> AsyncIterator[Sequence[Point]]:
    """Yield the costs for each number of records on one day of one workspace."""
    kinds = [
        replace(USUAL, key_id=key_name(0, place), key_label=f"key-{place:05d}", labels={})
        for place in range(100)
    ]
    for count in RECORDS:
        rows = RecordRows(kinds, workspace_id=_WORKSPACE, day_s=_YESTERDAY_S, count=count)
        deployment = copy_template(template)
        deployment[template.tables.generations, rows.partition] = rows
        yield await _measure(
            template,
            deployment,
            _record_reads(rows),
            size=count,
            memory_max=_RECORDS_MEMORY_MAX,
        )
        whole: dict[str, Operation] = {
            "activity of a live day": lambda stores: stores.activity.activity(
                _WORKSPACE, _YESTERDAY_S, _YESTERDAY_S + DAY_S
            ),
            "roll-up of the day": lambda stores: stores.activity.close_due(),
            "audit": lambda stores: stores.audit.run(),
        }
        opened = {**_open_day(template), (template.tables.generations, rows.partition): rows}
        fits = {
            name: operation
            for name, operation in whole.items()
            if count <= _READ_WHOLE_MAX.get(name, count)
        }
        yield await _measure(template, opened, fits, size=count, memory_max=_RECORDS_MEMORY_MAX)


def _record_reads(rows: RecordRows) -> Mapping[str, Operation]:
    middle = rows.record(len(rows) // 2).id
    days = GenerationFilter(since_s=_YESTERDAY_S, until_s=_YESTERDAY_S + DAY_S)
    none = replace(days, model="none")
    return {
        "one record": lambda stores: stores.generations.get(_WORKSPACE, middle),
        "latest 20 records": lambda stores: stores.generations.page(_WORKSPACE, days, limit=20),
        "20 records from the middle": lambda stores: stores.generations.page(
            _WORKSPACE, days, limit=20, before=middle
        ),
        "20 records that a filter lacks": lambda stores: stores.generations.page(
            _WORKSPACE, none, limit=20
        ),
    }


def _open_day(template: Template) -> Places:
    """Return the workspace with a day that is over but not closed."""
    mark = f"D#{day_name(_YESTERDAY_S)}"
    core = template.tables.core
    open_items = [item for item in template.items[core] if item[AnyItem.SORT]["S"] != mark]
    return copy_template(replace(template, items={**template.items, core: open_items}))


_UPKEEP: Final[Mapping[str, Operation]] = {
    "sweep": lambda stores: stores.sweeper.run(),
    "maintenance": lambda stores: maintenance(stores).run(),
    "audit": lambda stores: stores.audit.run(),
}


async def _measure(
    template: Template,
    rows: Places,
    operations: Mapping[str, Operation],
    *,
    size: int,
    memory_max: int = _MEMORY_MAX,
) -> Sequence[Point]:
    counted = CountedStore(GeneratedRows(None, rows))
    # Frozen objects of the benchmark itself are not traversed by later collections.
    gc.collect()
    gc.freeze()
    try:
        return await measure_operations(
            operations,
            size=size,
            counted=counted,
            stores=lambda: stores_on(counted, template),
            memory=size <= memory_max,
        )
    finally:
        gc.unfreeze()
