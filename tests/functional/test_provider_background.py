"""`tollgate serve` is killed while a response runs in its provider's background mode.

Keeps C84.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from typing_extensions import override

from tests.deployment import Deployment
from tests.functional.test_background import check_bill, ended
from tests.functional.test_batches import sdk
from tests.functional.test_serve import served
from tests.loopback import LocalServer
from tests.provider_background import said
from tollgate.routing.file.compile import compile_catalog

pytestmark = pytest.mark.asyncio(loop_scope="session")

ROUTING = """
version: 1
providers:
  near:
    codec: openai_responses
    transport: http_sse
    base_url: {url}/v1
    background: {{ source: made up, checked: 2026-11-21 }}
models:
  acme/deep:
    name: Deep
    context: 100000
    max_output: 10000
    endpoints:
      - provider: near
        upstream: deep-1
        price: {{ input: 1, output: 2, source: made up, checked: 2026-11-21 }}
"""


class BackgroundServer(LocalServer):
    """A provider that runs responses until the test ends them."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.submitted: list[Any] = []
        self.is_ended = False
        self.polled = asyncio.Event()

    @override
    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.calls.append(f"{request.method} {request.path}")
        match request.method, request.path:
            case "POST", "/v1/responses":
                self.submitted.append(json.loads(await request.read()))
                found: Any = {"id": "resp_theirs", "status": "queued"}
            case "GET", "/v1/responses/resp_theirs":
                self.polled.set()
                found = said() if self.is_ended else {"id": "resp_theirs", "status": "in_progress"}
            case "POST", "/v1/responses/resp_theirs/cancel":
                self.is_ended = True
                found = {"id": "resp_theirs", "status": "cancelled"}
            case "DELETE", "/v1/responses/resp_theirs":
                found = {"id": "resp_theirs", "deleted": True}
            case unexpected:
                raise AssertionError(unexpected)
        return web.json_response(found)


@pytest.mark.nightly
async def test_c84_a_providers_run_outlives_the_server_that_was_killed(
    deployment: Deployment, tmp_path: Path
) -> None:
    workspace = await deployment.workspace(response_days=7)
    routing, catalog = tmp_path / "routing.yaml", tmp_path / "routing.json"
    async with BackgroundServer() as provider:
        routing.write_text(ROUTING.format(url=provider.url))
        catalog.write_bytes(compile_catalog(routing, dev=True).content)
        places = {"TOLLGATE_OBJECTS_FOLDER": str(tmp_path), "TOLLGATE_CATALOG_FILE": str(catalog)}
        async with served(deployment, **places) as server:
            async with sdk(server, workspace) as client:
                queued = await client.responses.create(
                    model="acme/deep", input="Research bridges.", background=True
                )
                await asyncio.wait_for(provider.polled.wait(), 60)
            server.process.kill()
            await server.process.wait()
        provider.is_ended = True
        async with served(deployment, **places) as server, sdk(server, workspace) as client:
            answered = await ended(client, queued)
    assert (answered.status, answered.output_text) == ("completed", "Hello")
    [sent] = provider.submitted
    assert (sent["background"], sent["store"]) == (True, True)
    assert provider.calls[-1] == "DELETE /v1/responses/resp_theirs"
    await check_bill(deployment, workspace, 1)
