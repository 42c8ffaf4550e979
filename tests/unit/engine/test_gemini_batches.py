"""Lines that Google AI Studio runs in batches of its own.

Keeps C83.
"""

import json
from collections.abc import Sequence

from msgspec.structs import replace

from tests.batches import Works, batch_of, line
from tests.provider_batches import (
    HALF_NANO_USD,
    TERMS,
    BatchingDirectory,
    ScriptedBatches,
    batching_house,
)
from tests.scripted import Scripted, frame
from tests.unit.routing.catalogs import endpoint, model, provider
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


async def embedded(batches: ScriptedBatches, *inputs: str | list[str]) -> Works:
    """A finished batch of embeddings by Gemini, which answers interactive requests of two texts."""
    values = {"values": [0.25, 1.0]}
    home = await batching_house(
        batches,
        near=Scripted([frame({"embeddings": [values, values]})]),
        providers={"near": provider(codec="gemini", batch={**TERMS, "form": "gemini"})},
        models={
            "acme/vectors": model(
                endpoint("near", "v", dollars_out="0"), kind="embedding", vectors={"dimensions": 2}
            )
        },
        aliases={},
        routes={},
    )
    url = "/v1/embeddings"
    bodies = [{"model": "acme/vectors", "input": each} for each in inputs]
    asked = [line(f"n{at}", url=url, body=body) for at, body in enumerate(bodies)]
    works = await batch_of(home, asked, endpoint=url)
    await works.run(time_s=200_000)
    await works.check_once(len(inputs))
    return works


async def test_c81_c83_gemini_embeds_lines_of_one_text_in_its_batches() -> None:
    def vector(request: BatchedRequest) -> Sequence[BatchedAnswer]:
        assert request.path == "/v1beta/models/v:batchEmbedContents"
        body = b'{"embeddings": [{"values": [0.5, 1.0]}]}'
        return [BatchedAnswer(custom_id=request.custom_id, status=200, body=body)]

    batches = ScriptedBatches(answer=vector)
    works = await embedded(batches, "One.", ["Two."])
    assert (len(batches.requests), len(works.home.near.requests)) == (2, 0)
    [first, _] = works.lines((await works.batch()).output_file_id)
    assert first["response"]["body"]["data"][0]["embedding"] == [0.5, 1.0]
    assert {each.service_tier for each in works.records} == {"batch"}


async def test_c81_c83_the_gateway_embeds_lines_of_several_texts_with_gemini() -> None:
    batches = ScriptedBatches()
    works = await embedded(batches, ["One.", "Two."])
    assert (batches.accepted, len(works.home.near.requests)) == ({}, 1)
    assert {each.service_tier for each in works.records} == {None}
