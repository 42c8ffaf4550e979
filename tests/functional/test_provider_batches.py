"""`tollgate dev` with a provider that runs batches of its own, restarted while the provider works.

Keeps C83.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from openai import AsyncOpenAI
from openai.types import Batch

from tests.batches import CHAT, file_of, line
from tests.functional.test_submitted_lines import BatchServer
from tests.local_server import LocalServer, local_server

COUNT = 50
ROUTING = """
version: 1
providers:
  near:
    codec: openai_chat
    transport: http_sse
    base_url: {url}/v1
    batch: {{ form: openai, percent: 50, source: made up, checked: 2026-11-21 }}
models:
  acme/large:
    name: Large
    context: 100000
    max_output: 10000
    endpoints:
      - provider: near
        upstream: large-1
        price: {{ input: 3, output: 15, source: made up, checked: 2026-11-21 }}
"""


@asynccontextmanager
async def dev(state: Path, routing: Path) -> AsyncIterator[LocalServer]:
    starting = local_server(state, routing=routing)
    server = await asyncio.to_thread(starting.__enter__)
    try:
        yield server
    finally:
        await asyncio.to_thread(starting.__exit__, None, None, None)


def sdk(server: LocalServer) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=server.base_url, api_key=server.key)


async def ended(client: AsyncOpenAI, batch_id: str) -> Batch:
    async with asyncio.timeout(400):
        while True:
            batch = await client.batches.retrieve(batch_id)
            if batch.status in ("completed", "failed", "expired"):
                return batch
            await asyncio.sleep(1)


@pytest.mark.nightly
async def test_c83_a_providers_batch_outlives_the_server_that_submitted_it(tmp_path: Path) -> None:
    routing = tmp_path / "routing.yaml"
    async with BatchServer() as provider:
        routing.write_text(ROUTING.format(url=provider.url))
        async with dev(tmp_path / "state", routing) as server, sdk(server) as client:
            content = file_of([line(f"n{number}") for number in range(COUNT)])
            file = await client.files.create(file=("lines.jsonl", content), purpose="batch")
            batch = await client.batches.create(
                input_file_id=file.id, endpoint=CHAT, completion_window="24h"
            )
            await asyncio.wait_for(provider.accepted.wait(), 60)
        async with dev(tmp_path / "state", routing) as server, sdk(server) as client:
            batch = await ended(client, batch.id)
            assert batch.status == "completed"
            output = await client.files.content(str(batch.output_file_id))
            ids = [json.loads(each)["custom_id"] for each in output.text.splitlines()]
    assert ids == [f"n{number}" for number in range(COUNT)]
    assert provider.batches == 1
    # Ten tokens in and two out cost 60,000 nano-dollars, half of it in a batch.
    assert batch.to_dict()["total_cost"] == pytest.approx(COUNT * 30_000 / 1e9)
