"""Lines that run in Bedrock's own batches, which need 100 lines and take no tools.

Keeps C83.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.batches import CHAT, batch_of, file_of, line
from tests.gateways import House
from tests.provider_batches import (
    HALF_NANO_USD,
    TERMS,
    BatchingDirectory,
    ScriptedBatches,
    batching_house,
)
from tests.unit.routing.catalogs import provider
from tollgate.engine.batches.lines import BATCH_FORMATS
from tollgate.engine.batches.validation import FileCheck, LineParser

TOOL = {"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
CALL = {"id": "c", "type": "function", "function": {"name": "now", "arguments": "{}"}}


async def at_bedrock(batches: ScriptedBatches, **terms: Any) -> House:
    """A house whose first provider is Bedrock; lines that the gateway runs use OpenAI's format."""
    near = {"codec": "bedrock", "transport": "bedrock_runtime", "region": "us-east-1"}
    near |= {"batch": {**TERMS, "form": "bedrock", **terms}}
    return await batching_house(batches, providers={"near": near, "far": provider()})


def lines(count: int) -> list[dict[str, Any]]:
    return [line(f"n{number}") for number in range(count)]


async def test_c83_the_gateway_runs_fewer_lines_than_bedrock_accepts() -> None:
    batches = ScriptedBatches()
    works = await batch_of(await at_bedrock(batches), lines(99))
    await works.run(time_s=200_000)
    batch = await works.check_once(99)
    assert not batches.accepted
    assert len(works.home.near.requests) == 99
    assert batch.tally.cost_nano_usd == 99 * 2 * HALF_NANO_USD


async def endpoints(home: House, content: bytes) -> set[str | None]:
    """Return the endpoints to whose batches lines of a file go; None for lines of the gateway."""
    format_ = BATCH_FORMATS[CHAT]
    parser = LineParser(
        gateway=home.gateway,
        principal=home.principal,
        format=format_,
        ingress=home.front.ingresses[format_.name],
    )

    async def read(start: int, length: int) -> bytes:
        return content[start : start + length]

    checked = await FileCheck(parser, "batch_1").run(read, len(content))
    assert not checked.faults
    return {piece.endpoint for piece in checked.pieces}


@pytest.mark.parametrize(
    ("changes", "endpoint"),
    [
        ({}, "near/large-1"),
        ({"tools": [TOOL]}, None),
        ({"response_format": SCHEMA}, None),
        (
            {
                "messages": [
                    {"role": "user", "content": "Hi"},
                    {"role": "assistant", "tool_calls": [CALL]},
                    {"role": "tool", "tool_call_id": "c", "content": "noon"},
                ]
            },
            None,
        ),
    ],
)
async def test_c83_the_gateway_runs_lines_with_tools_or_a_format_of_the_answer(
    changes: dict[str, Any], endpoint: str | None
) -> None:
    body = {"model": "acme/large", "messages": [{"role": "user", "content": "Hi"}], **changes}
    home = await at_bedrock(ScriptedBatches())
    content = file_of([line(f"n{number}", body=body) for number in range(20)])
    assert await endpoints(home, content) == {endpoint}


async def test_c83_the_gateway_runs_lines_of_models_that_the_row_does_not_name() -> None:
    content = file_of(lines(20))
    named = await at_bedrock(ScriptedBatches(), models=("large-1", "other"))
    assert await endpoints(named, content) == {"near/large-1"}
    other = await at_bedrock(ScriptedBatches(), models=("other",))
    assert await endpoints(other, content) == {None}


async def test_c83_a_deployment_without_a_bucket_runs_bedrocks_lines_itself() -> None:
    home = await at_bedrock(ScriptedBatches())
    directory = home.gateway.providers
    assert isinstance(directory, BatchingDirectory)
    home.gateway = replace(home.gateway, providers=directory.directory)
    assert await endpoints(home, file_of(lines(20))) == {None}
