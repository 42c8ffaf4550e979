"""Lines of batches at providers in OpenAI's form and Anthropic's, from file to file.

Keeps C83.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace
from typing_extensions import override

from tests.batches import Works, batch_of, line
from tests.functional.providers.one_provider import OneProvider
from tests.gateways import house
from tests.loopback import LocalServer
from tests.provider_batches import reply
from tests.unit.routing.catalogs import endpoint, model, provider
from tollgate.core.clock import Deadline, SystemClock
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.providers.ports.base import Provider
from tollgate.providers.transports.http_pool import HttpPool

COUNT = 40
TERMS = {"percent": 50, "source": "made up", "checked": "2026-11-21"}


class Later(SystemClock):
    """A clock that a test puts forward."""

    ahead_s = 0.0

    @override
    def now_s(self) -> float:
        return super().now_s() + self.ahead_s


class BatchServer(LocalServer):
    """Runs batches in both forms, each until it was polled twice."""

    def __init__(self) -> None:
        super().__init__()
        self.polls = 0
        self.batches = 0
        self.accepted = asyncio.Event()
        self.metadata: Any = None
        self.requests: Sequence[Any] = ()

    @override
    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        match request.method, request.path:
            case "POST", "/v1/files":
                form = await request.post()
                assert form["purpose"] == "batch"
                content = form["file"].file.read()
                self.requests = [json.loads(each) for each in content.splitlines()]
                found: Any = {"id": "file-in"}
            case "POST", "/v1/batches":
                self.metadata = json.loads(await request.read())["metadata"]
                found = self._accept({"id": "b", "status": "validating"})
            case "GET", "/v1/batches":
                found = {"data": [{"id": "b", "metadata": self.metadata}]}
            case "GET", "/v1/batches/b":
                found = {"id": "b", "status": self._status("in_progress", "completed")}
                found["output_file_id"] = "file-out"
            case "GET", "/v1/files/file-out/content":
                return _lines(self._output(each) for each in reversed(self.requests))
            case "POST", "/v1/messages/batches":
                self.requests = json.loads(await request.read())["requests"]
                found = self._accept(_message_batch("in_progress"))
            case "GET", "/v1/messages/batches/m":
                found = _message_batch(self._status("in_progress", "ended"))
            case "GET", "/v1/messages/batches/m/results":
                return _lines(map(_result, reversed(self.requests)))
            case unexpected:
                raise AssertionError(unexpected)
        return web.json_response(found)

    def _accept(self, batch: Any) -> Any:
        self.batches += 1
        self.accepted.set()
        return batch

    def _status(self, running: str, ended: str) -> str:
        self.polls += 1
        return ended if self.polls > 1 else running

    def _output(self, asked: Any) -> Any:
        assert asked["url"] == "/v1/chat/completions"
        assert "stream" not in asked["body"]
        body = json.loads(reply(asked["body"]["messages"][0]["content"]))
        return {"custom_id": asked["custom_id"], "response": {"status_code": 200, "body": body}}


def _message_batch(status: str) -> Any:
    return {"id": "m", "processing_status": status, "created_at": "2026-11-21T12:00:00Z"}


def _result(asked: Any) -> Any:
    params = asked["params"]
    assert "stream" not in params
    [said] = params["messages"][0]["content"]
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": params["model"],
        "content": [{"type": "text", "text": said["text"]}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 2, "service_tier": "batch"},
    }
    return {"custom_id": asked["custom_id"], "result": {"type": "succeeded", "message": message}}


def _lines(lines: Any) -> web.Response:
    body = b"".join(json.dumps(each).encode() + b"\n" for each in lines)
    return web.Response(body=body, content_type="application/octet-stream")


@pytest.fixture
async def server() -> AsyncIterator[BatchServer]:
    async with BatchServer() as it:
        yield it


class OneRow:
    """A directory with one provider."""

    def __init__(self, found: Provider) -> None:
        self._found = found

    def provider(self, slug: str, principal: Principal) -> Provider:
        return self._found


async def submitted(server: LocalServer, pool: HttpPool, form: str, **changes: Any) -> Works:
    """A batch of lines in a client's format, for a provider in a form."""
    codec = form if form in ("anthropic", "gemini") else "openai_chat"
    row = {"codec": codec, "base_url": f"{server.url}/v1", "batch": {"form": form, **TERMS}}
    home = await house(
        providers={"near": provider(**row)},
        models={"acme/large": model(endpoint("near", "l", dollars_in="3", dollars_out="15"))},
        aliases={},
        routes={},
    )
    terms = home.catalog.providers["near"].batch
    auth = "x-goog-api-key" if form == "gemini" else "bearer"
    row = {"codec": codec, "auth": auth, "batch": terms}
    found = OneProvider(f"{server.url}/v1", pool).provider("http_sse", **row)
    clock = Later()
    home.gateway = replace(home.gateway, clock=clock, ids=IdSource(clock), providers=OneRow(found))
    return await batch_of(home, [line(f"n{n}", **changes) for n in range(COUNT)])


async def finish(works: Works) -> None:
    """Work until the batch ends, without the pauses between polls."""
    clock: Any = works.home.gateway.clock
    worker = works.worker()
    while (wait_s := await worker.work(works.place, Deadline.within(clock, 600.0))) is not None:
        clock.ahead_s += wait_s


@pytest.mark.parametrize("form", ["openai", "anthropic"])
async def test_c83_a_providers_batch_answers_each_line_in_the_callers_format(
    server: BatchServer, form: str
) -> None:
    pool = HttpPool()
    works = await submitted(server, pool, form)
    await finish(works)
    await pool.close()
    batch = await works.check_once(COUNT)
    assert (server.batches, server.polls > 1) == (1, True)
    assert batch.tally.cost_nano_usd == COUNT * (10 * 1_500 + 2 * 7_500)
    for found in works.lines(batch.output_file_id):
        body = found["response"]["body"]
        assert body["object"] == "chat.completion"
        assert body["choices"][0]["message"]["content"] == f"Say {found['custom_id']}."
    assert {each.service_tier for each in works.records} == {"batch"}
