"""Providers that lose, repeat and mix up the results of a batch: each line is settled once.

Keeps C83.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.batch_servers import SERVERS, BatchServer
from tests.batches import Works
from tests.functional.test_submitted_lines import COUNT, finish, submitted
from tests.provider_batches import HALF_NANO_USD
from tollgate.providers.transports.http_pool import HttpPool
from tollgate.stores.rules.batches import cancel

forms = pytest.mark.parametrize("form", SERVERS)


@asynccontextmanager
async def works_at(form: str) -> AsyncIterator[tuple[Works, BatchServer]]:
    """A batch of lines for a provider in a form."""
    pool = HttpPool()
    async with SERVERS[form]() as server:
        yield await submitted(server, pool, form), server
        await pool.close()


async def check_half(works: Works, server: BatchServer) -> None:
    """Assert that half of the lines have an answer, and that nothing else is billed or held."""
    batch = await works.batch()
    assert server.created == 1
    assert batch.tally.completed == COUNT // 2
    assert batch.tally.failed + batch.not_run == COUNT // 2
    assert works.home.held_nano_usd == 0
    spent = works.home.spent_nano_usd
    assert spent == batch.tally.cost_nano_usd == COUNT // 2 * HALF_NANO_USD
    output, errors = works.lines(batch.output_file_id), works.lines(batch.error_file_id)
    assert len({each["custom_id"] for each in output + errors}) == len(output + errors) == COUNT
    for found in output:
        said = found["response"]["body"]["choices"][0]["message"]["content"]
        assert said == f"Say {found['custom_id']}."
    assert {each.service_tier for each in works.records if each.outcome == "ok"} == {"batch"}


@forms
async def test_c83_results_that_are_lost_repeated_or_strange_settle_each_line_once(
    form: str,
) -> None:
    async with works_at(form) as (works, server):
        await finish(works)
        await check_half(works, server)
        batch = await works.batch()
        assert (batch.status, server.cancels) == ("completed", 0)
        assert batch.tally.failed == COUNT // 2


@forms
async def test_c83_a_batch_that_is_cancelled_during_submission_bills_what_ran(form: str) -> None:
    async with works_at(form) as (works, server):

        async def cancelled() -> None:
            now_s = works.home.gateway.clock.now_s()
            await works.store.change(works.place, lambda found: cancel(found, now_s))

        server.on_create = cancelled
        await finish(works)
        await check_half(works, server)
        assert ((await works.batch()).status, server.cancels) == ("cancelled", 1)


@forms
async def test_c83_a_batch_whose_acceptance_was_lost_is_found_by_its_name(form: str) -> None:
    async with works_at(form) as (works, server):
        server.loses_reply = True
        await finish(works)
        await check_half(works, server)
