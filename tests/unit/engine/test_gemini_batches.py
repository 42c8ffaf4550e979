"""Lines that Google AI Studio runs in batches of its own.

Keeps C83.
"""

import json
from collections.abc import Sequence

from msgspec.structs import replace

from tests.batches import batch_of, line
from tests.provider_batches import (
    HALF_NANO_USD,
    TERMS,
    BatchingDirectory,
    ScriptedBatches,
    batching_house,
)
from tests.unit.routing.catalogs import provider
from tollgate.providers.ports.formats import codec_of
from tollgate.providers.ports.provider_batches import BatchedAnswer, BatchedRequest


async def test_c83_whole_answers_of_gemini_are_billed_at_the_price_of_its_batches() -> None:
    def says(request: BatchedRequest) -> Sequence[BatchedAnswer]:
        assert request.path == "/v1beta/models/large-1:streamGenerateContent?alt=sse"
        candidate = {"content": {"parts": [{"text": "Hello"}]}, "finishReason": "STOP"}
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 2, "totalTokenCount": 12}
        body = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "large-1"}
        content = json.dumps(body).encode()
        return [BatchedAnswer(custom_id=request.custom_id, status=200, body=content)]

    terms = {**TERMS, "form": "gemini"}
    batches = ScriptedBatches(answer=says)
    providers = {"near": provider(codec="gemini", batch=terms), "far": provider()}
    home = await batching_house(batches, providers=providers)
    directory = BatchingDirectory(home.gateway.providers, batches, codec_of("gemini"))
    home.gateway = replace(home.gateway, providers=directory)
    works = await batch_of(home, [line(f"n{number}") for number in range(3)])
    await works.run(time_s=200_000)
    batch = await works.check_once(3)
    [first, *_] = works.lines(batch.output_file_id)
    assert first["response"]["body"]["choices"][0]["message"]["content"] == "Hello"
    assert batch.tally.cost_nano_usd == 3 * HALF_NANO_USD
