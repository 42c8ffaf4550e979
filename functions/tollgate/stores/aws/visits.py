"""Visits all workspaces concurrently, for scheduled work."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tollgate.aws.aws_json import AwsCaller
from tollgate.stores.aws.decoding import read_text
from tollgate.stores.aws.items import AnyItem
from tollgate.stores.aws.row_ranges import all_rows
from tollgate.stores.aws.tables import WORKSPACE_NAMES

_Result = TypeVar("_Result")


async def visit_workspaces(
    client: AwsCaller, core: str, visit: Callable[[str], Awaitable[_Result]], *, at_once: int
) -> list[_Result]:
    """Call `visit` with the id of each workspace; return the results in the order of ids.

    At most `at_once` visits run at a time. A visit mostly waits for the store, and a long one does
    not delay the others. The first error cancels all visits.
    """
    names = await all_rows(client, core, WORKSPACE_NAMES, "W#")
    ids = [read_text(name, AnyItem.SORT).removeprefix("W#") for name in names]
    remaining_ids = iter(ids)
    results: dict[str, _Result] = {}

    async def visit_some() -> None:
        for workspace_id in remaining_ids:
            results[workspace_id] = await visit(workspace_id)

    visitors = [asyncio.ensure_future(visit_some()) for _ in range(min(at_once, len(ids)))]
    try:
        await asyncio.gather(*visitors)
    finally:
        for visitor in visitors:
            visitor.cancel()
    return [results[workspace_id] for workspace_id in ids]
