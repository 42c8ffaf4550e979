"""Results of providers' batches whose ids and bodies are hostile lose no line and no money.

Keeps C83.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest
from msgspec.structs import replace

from tests.batches import line
from tests.provider_batches import HALF_NANO_USD, ScriptedBatches, answered, submitted_batch
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.providers.ports.provider_batches import BatchedAnswer, BatchedRequest

IDS = {
    "many digits": "{name}-" + "9" * 5_000,
    "a number of no line": "{name}-7000",
    "other digits": "{name}-\u0663",
    "another batch": "batch-1",
    "a line break": "{name}-1\n",
    "nothing": "",
}


@pytest.mark.parametrize("id_", IDS.values(), ids=IDS)
async def test_c83_an_id_that_was_not_sent_changes_nothing(id_: str) -> None:
    def forge(request: BatchedRequest) -> Sequence[BatchedAnswer]:
        [honest] = answered(request)
        name, _, _ = request.custom_id.rpartition("-")
        forged = replace(honest, custom_id=id_.format(name=name), body=b'{"choices": []}')
        return [honest] if name == "x" else [forged, honest]

    works = await submitted_batch(
        ScriptedBatches(answer=forge, runs_s=90.0), [line(f"n{n}") for n in range(2)]
    )
    await works.run(time_s=200_000)
    batch = await works.check_once(2)
    assert batch.tally.cost_nano_usd == 2 * HALF_NANO_USD


class Unreadable(ScriptedBatches):
    """A provider whose results never can be read."""

    async def read_answers(self, batch_id: str) -> AsyncGenerator[BatchedAnswer, None]:
        await asyncio.sleep(9_000.0)
        for answer in ():
            yield answer
        raise UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, "The file is gone.", status=404)


class Endless(ScriptedBatches):
    """A provider whose results never end."""

    async def read_answers(self, batch_id: str) -> AsyncGenerator[BatchedAnswer, None]:
        _, _, [request, *_] = self.accepted[batch_id]
        await asyncio.sleep(9_000.0)
        while True:
            for answer in answered(request):
                yield answer


@pytest.mark.parametrize("batches", [Unreadable, Endless])
async def test_c83_results_that_cannot_be_read_are_given_up(batches: type[ScriptedBatches]) -> None:
    two = [line(f"n{n}") for n in range(2)]
    works = await submitted_batch(batches(runs_s=90_000.0), two)
    batch = await asyncio.wait_for(works.run(time_s=1e9), timeout=300_000)
    assert batch.is_ended
    assert works.home.held_nano_usd == 0
