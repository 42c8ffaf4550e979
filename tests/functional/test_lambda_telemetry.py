"""Traces through the deployed path: the caller's, the provider's, and the collector's."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from tests.deployed_functions import CHAT_ROUTES
from tests.deployment import (
    Deployment,
    deployed,
)
from tests.otlp import read_export
from tests.upstream.speakers import OPENAI, SPEAKERS, Speaker

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHAT = CHAT_ROUTES[0].removeprefix("POST ")
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = f"00-{TRACE_ID}-00f067aa0ba902b7-01"
WORDS = "a secret that no span may tell"


class Collector:
    """Keeps what is posted to /v1/traces; answers with `status`."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.status = 200
        self.url = ""

    async def take(self, request: web.Request) -> web.Response:
        assert request.content_type == "application/x-protobuf"
        self.requests.append(read_export(await request.read()))
        return web.json_response({}, status=self.status)

    @property
    def spans(self) -> list[Any]:
        return [span for request in self.requests for span in request["spans"]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def collector() -> AsyncIterator[Collector]:
    running, app = Collector(), web.Application()
    app.router.add_post("/v1/traces", running.take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    running.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield running
    await runner.cleanup()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def watched(
    ministack_url: str, collector: Collector, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Deployment]:
    directory = tmp_path_factory.mktemp("watched")
    variables = {"TOLLGATE_OTLP_ENDPOINT_URL": collector.url}
    async with deployed(ministack_url, directory, chat_environment=variables) as running:
        yield running


async def asked(deployment: Deployment, speaker: Speaker, **headers: str) -> str:
    """The id of a generation, once its invocation has ended."""
    workspace = await deployment.workspace()
    deployment.upstreams.of(speaker).reset()
    deployment.upstreams.of(speaker).enqueue(speaker.script(speaker.text([WORDS])))
    headers |= {"authorization": f"Bearer {workspace.inference.secret}"}
    messages = [{"role": "user", "content": WORDS}]
    body = {"model": speaker.model, "messages": messages, "stream": True}
    url = f"{deployment.emulator.url}{CHAT}"
    async with deployment.http.post(url, headers=headers, json=body) as response:
        assert (response.status, (await response.read())[-14:]) == (200, b"data: [DONE]\n\n")
        generation_id = response.headers["x-generation-id"]
    await deployment.chat.invocations[-1].finished.wait()
    return generation_id.removeprefix("gen-")


@pytest.mark.parametrize("speaker", SPEAKERS, ids=lambda speaker: speaker.name)
async def test_a_trace_goes_from_the_caller_through_us_to_the_provider(
    watched: Deployment, collector: Collector, speaker: Speaker
) -> None:
    collector.requests.clear()
    generation_id = await asked(watched, speaker, traceparent=CALLER, tracestate="who=me")
    [span] = collector.spans
    assert (span["trace"], span["parent"]) == (TRACE_ID, "00f067aa0ba902b7")
    [received] = watched.upstreams.of(speaker).received
    assert received.headers["traceparent"] == f"00-{TRACE_ID}-{span['id']}-01"
    assert "tracestate" not in received.headers
    assert generation_id in repr(span)
    assert WORDS not in repr(collector.requests) + watched.chat.log
    assert TRACE_ID in watched.chat.log


async def test_without_a_trace_of_the_callers_the_provider_is_told_of_none(
    watched: Deployment, collector: Collector
) -> None:
    collector.requests.clear()
    await asked(watched, OPENAI)
    [span] = collector.spans
    assert span["parent"] is None
    [received] = watched.upstreams.alpha.received
    assert "traceparent" not in received.headers


async def test_a_collector_that_refuses_costs_no_answer(
    watched: Deployment, collector: Collector
) -> None:
    collector.status = 503
    await asked(watched, OPENAI)
    collector.status = 200
    assert '"failure":"HTTP 503","spans_lost":1' in watched.chat.log
    assert watched.emulator.take_violations() == []
