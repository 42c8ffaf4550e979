"""Lines that Bedrock runs in batches of its own, which have a minimum of lines and no tools.

Keeps C83.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from tests.batches import Works, batch_of, line
from tests.gateways import House
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

TOOL = {"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
CALL = {"id": "c", "type": "function", "function": {"name": "now", "arguments": "{}"}}


def says(request: BatchedRequest) -> Sequence[BatchedAnswer]:
    """Answer as Converse does, with the nulls that batches write."""
    assert request.path == "/model/large-1/converse-stream"
    block = {"text": "Hello", "toolUse": None, "reasoningContent": None, "image": None}
    body = {
        "output": {"message": {"role": "assistant", "content": [block]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 10, "outputTokens": 2, "totalTokens": 12, "cacheDetails": None},
        "metrics": {"latencyMs": 5},
        "serviceTier": None,
    }
    content = json.dumps(body).encode()
    return [BatchedAnswer(custom_id=request.custom_id, status=200, body=content)]


async def at_bedrock(batches: ScriptedBatches, **terms: Any) -> House:
    """A house whose first provider is Bedrock; what the gateway runs speaks OpenAI's format."""
    near = {"codec": "bedrock", "transport": "bedrock_runtime", "region": "us-east-1"}
    near |= {"batch": {**TERMS, "form": "bedrock", **terms}}
    return await batching_house(batches, providers={"near": near, "far": provider()})


async def batched(batches: ScriptedBatches, lines: Sequence[dict[str, Any]]) -> Works:
    home = await at_bedrock(batches)
    directory = BatchingDirectory(home.gateway.providers, batches, codec_of("bedrock"))
    home.gateway = replace(home.gateway, providers=directory)
    works = await batch_of(home, lines)
    await works.run(time_s=200_000)
    return works


def lines(count: int) -> list[dict[str, Any]]:
    return [line(f"n{number}") for number in range(count)]


async def test_c83_a_hundred_lines_run_in_bedrocks_batch_at_half_the_price() -> None:
    batches = ScriptedBatches(answer=says)
    works = await batched(batches, lines(100))
    batch = await works.check_once(100)
    [(_, _, requests)] = batches.accepted.values()
    assert len(requests) == 100
    [first, *_] = works.lines(batch.output_file_id)
    assert first["response"]["body"]["choices"][0]["message"]["content"] == "Hello"
    assert batch.tally.cost_nano_usd == 100 * HALF_NANO_USD


async def test_c83_the_gateway_runs_fewer_lines_than_bedrock_accepts() -> None:
    batches = ScriptedBatches(answer=says)
    works = await batch_of(await at_bedrock(batches), lines(99))
    await works.run(time_s=200_000)
    batch = await works.check_once(99)
    assert not batches.accepted
    assert len(works.home.near.requests) == 99
    assert batch.tally.cost_nano_usd == 99 * 2 * HALF_NANO_USD


@pytest.mark.parametrize(
    "changes",
    [
        {"tools": [TOOL]},
        {"response_format": SCHEMA},
        {
            "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "c", "content": "noon"},
            ]
        },
    ],
)
async def test_c83_the_gateway_runs_lines_with_tools_or_a_format_of_the_answer(
    changes: dict[str, Any],
) -> None:
    body = {"model": "acme/large", "messages": [{"role": "user", "content": "Hi"}], **changes}
    batches = ScriptedBatches(answer=says)
    works = await batch_of(
        await at_bedrock(batches), [line(f"n{number}", body=body) for number in range(100)]
    )
    await works.run(time_s=200_000)
    await works.check_once(100)
    assert not batches.accepted


async def test_c83_the_gateway_runs_lines_of_models_that_the_row_does_not_name() -> None:
    batches = ScriptedBatches(answer=says)
    works = await batch_of(await at_bedrock(batches, models=("other",)), lines(100))
    await works.run(time_s=200_000)
    await works.check_once(100)
    assert not batches.accepted


async def test_c83_a_deployment_without_a_bucket_runs_bedrocks_lines_itself() -> None:
    batches = ScriptedBatches(answer=says)
    home = await at_bedrock(batches)
    directory = home.gateway.providers
    assert isinstance(directory, BatchingDirectory)
    home.gateway = replace(home.gateway, providers=directory.directory)
    works = await batch_of(home, lines(100))
    await works.run(time_s=200_000)
    batch = await works.check_once(100)
    assert not batches.accepted
    # Pieces of 32 lines, which several workers can run at once.
    assert batch.pieces == 4
