"""Claude Code, the real program, against `tollgate dev`: a task to its end, and its refusals.

What docs/coding-agents.md says of refusals was seen here.

Keeps C40, C80, C94.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from tests.live.agents.programs import find_agent
from tests.local_server import LocalServer, environment, local_server
from tests.upstream.answers import Answer, in_chat, in_gemini, in_messages, in_responses
from tests.upstream.server import FakeUpstream, Script
from tests.upstream.speakers import Call

pytestmark = pytest.mark.client("npm:@anthropic-ai/claude-code", "messages")
PATIENCE_S = 120.0
CONTEXT = 200_000
STREAMED = True


@dataclass(frozen=True)
class Row:
    """A kind of provider: its entry in routing.yaml, and its words."""

    name: str
    provider: dict[str, Any]
    write: Callable[[Answer], list[bytes]]
    dialect: dict[str, Any]


def _claude_sse(answer: Answer) -> list[bytes]:
    return [b"data: " + event + b"\n\n" for event in in_messages(answer)]


ROWS = {
    row.name: row
    for row in (
        Row(
            "claude",
            {"codec": "anthropic"},
            _claude_sse,
            {"reasoning": "claude_adaptive", "counts_tokens": True},
        ),
        Row("openai", {"codec": "openai_responses"}, in_responses, {"reasoning": "effort"}),
        Row("gemini", {"codec": "gemini"}, in_gemini, {"reasoning": "gemini_level"}),
        Row("vllm", {"codec": "openai_chat"}, in_chat, {"reasoning_field": "reasoning_content"}),
    )
}


def routing(url: str) -> str:
    """A routing file whose providers are all the scripted upstream."""
    price = {"input": 1, "output": 2, "source": "a test", "checked": "2026-11-22"}
    return json.dumps(
        {
            "version": 1,
            "providers": {
                row.name: {
                    "transport": "http_sse",
                    "base_url": url,
                    "private": True,
                    **row.provider,
                    "dialect": row.dialect,
                }
                for row in ROWS.values()
            },
            "models": {
                f"acme/{row.name}": {
                    "name": row.name,
                    "context": CONTEXT,
                    "max_output": 64_000,
                    "supports": ["tools", "reasoning"],
                    "endpoints": [{"provider": row.name, "upstream": "m-1", "price": price}],
                }
                for row in ROWS.values()
            },
            "aliases": {"claude-with-gemini": {"to": "acme/gemini"}},
            "attribution": {
                "session": "header:x-claude-code-session-id",
                "device": "metadata:device_id",
            },
        }
    )


@dataclass(frozen=True)
class Desk:
    """A gateway, the upstream behind it, and an empty folder to work in."""

    server: LocalServer
    upstream: FakeUpstream
    folder: Path
    program: str

    @property
    def home(self) -> Path:
        """The home of the program's user."""
        return self.folder.parent / "home"

    async def ask(
        self, model: str, prompt: str = "Write a greeting.", **more: str
    ) -> dict[str, Any]:
        """What the program reports of one prompt, run to its end; an empty variable is not set.

        `requests` in it are whether each request of the program's was for a stream.
        """
        self.home.mkdir(exist_ok=True)
        variables = environment() | {
            "HOME": str(self.home),
            "ANTHROPIC_AUTH_TOKEN": self.server.key,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            **more,
        }
        variables = {name: value for name, value in variables.items() if value}
        options = ["--output-format", "json", "--allowedTools", "Write", "--model", model]
        async with watched(self.server) as (base_url, requests):
            process = await asyncio.create_subprocess_exec(
                self.program,
                "-p",
                prompt,
                *options,
                cwd=self.folder,
                env=variables | {"ANTHROPIC_BASE_URL": base_url},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            async with asyncio.timeout(PATIENCE_S):
                said, errors = await process.communicate()
        assert said, errors
        report: dict[str, Any] = json.loads(said)
        return report | {"requests": requests}

    async def records(self) -> list[dict[str, Any]]:
        """The records of all generations, dearest first."""
        async with aiohttp.ClientSession() as client:
            headers = {"x-api-key": self.server.management_key}
            url = f"{self.server.base_url}/generations"
            async with client.get(url, headers=headers) as reply:
                found: list[dict[str, Any]] = (await reply.json())["data"]
        return sorted(found, key=lambda it: it["total_cost"], reverse=True)

    async def key(self, **settings: Any) -> str:
        """A new key with these settings."""
        async with aiohttp.ClientSession() as client:
            headers = {"x-api-key": self.server.management_key}
            asked = {"name": "developer", **settings}
            url = f"{self.server.base_url}/keys"
            async with client.post(url, json=asked, headers=headers) as reply:
                return str((await reply.json())["key"])

    def refuse(self, status: int, message: str, *, times: int = 40, **headers: str) -> None:
        """Let the upstream refuse from now on."""
        error = {"type": "error", "error": {"type": "any", "message": message}}
        self.upstream.enqueue(*[Script.json(status, error, **headers)] * times)


@asynccontextmanager
async def watched(server: LocalServer) -> AsyncIterator[tuple[str, list[bool]]]:
    """Yield a base URL before the server, and a list that grows with each request for a message."""
    requests: list[bool] = []
    target = f"{urlsplit(server.base_url).scheme}://{urlsplit(server.base_url).netloc}"

    async def forward(sent: web.Request) -> web.StreamResponse:
        body = await sent.read()
        if sent.path.endswith("/messages"):
            requests.append(bool(json.loads(body).get("stream")))
        own = ("host", "content-length", "transfer-encoding", "accept-encoding")
        headers = {name: value for name, value in sent.headers.items() if name.lower() not in own}
        async with client.request(
            sent.method, target + sent.path_qs, headers=headers, data=body
        ) as answer:
            kept = {k: v for k, v in answer.headers.items() if k.lower() not in own}
            reply = web.StreamResponse(status=answer.status, headers=kept)
            await reply.prepare(sent)
            async for piece in answer.content.iter_any():
                await reply.write(piece)
            await reply.write_eof()
            return reply

    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", forward)
    runner = web.AppRunner(app)
    async with aiohttp.ClientSession(auto_decompress=False) as client:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/api", requests
        finally:
            await runner.cleanup()


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    program = find_agent("claude")
    folder = tmp_path / "work"
    folder.mkdir()
    file = tmp_path / "routing.yaml"
    async with FakeUpstream() as upstream:
        file.write_text(routing(upstream.url))
        starting = local_server(tmp_path / "state", routing=file)
        server = await asyncio.to_thread(starting.__enter__)
        try:
            yield Desk(server, upstream, folder, program)
        finally:
            await asyncio.to_thread(starting.__exit__, None, None, None)


def greeting(folder: Path) -> Call:
    path = json.dumps(str(folder / "greeting.txt"))
    return Call(id="toolu_1", name="Write", pieces=(f'{{"file_path":{path},', '"content":"Hello"}'))


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_c80_a_task_is_done_to_its_end(desk: Desk, row: Row) -> None:
    writes = Answer(
        thought="I write it.", calls=(greeting(desk.folder),), finish="tool_calls", cached=4
    )
    done = Answer(words=("It is ", "written."))
    desk.upstream.enqueue(*(Script(chunks=row.write(answer)) for answer in (writes, done)))
    report = await desk.ask(f"acme/{row.name}")
    assert (report["is_error"], report["result"]) == (False, "It is written.")
    assert (desk.folder / "greeting.txt").read_text() == "Hello"
    first, second = desk.upstream.received
    assert b"greeting.txt" in second.body
    assert len(second.body) > len(first.body)


REFUSED = "Failed to authenticate. API Error: 401 "


async def test_c94_a_key_that_is_unknown_is_asked_about_once(desk: Desk) -> None:
    report = await desk.ask("acme/claude", ANTHROPIC_AUTH_TOKEN="sk-tg-wrong")
    assert (report["api_error_status"], report["requests"]) == (401, [STREAMED])
    assert report["result"].startswith(REFUSED)


async def test_c94_money_that_is_spent_is_asked_about_once(desk: Desk) -> None:
    answer = ROWS["claude"].write(Answer(words=("Hello.",)))
    desk.upstream.enqueue(Script(chunks=answer))
    poor = await desk.key(limits={"total": 0.000001})
    assert (await desk.ask("acme/claude", ANTHROPIC_AUTH_TOKEN=poor))["result"] == "Hello."
    report = await desk.ask("acme/claude", ANTHROPIC_AUTH_TOKEN=poor)
    assert (report["api_error_status"], report["requests"]) == (402, [STREAMED])
    assert report["result"] == "API Error: 402 This key's limit of $0.000001 in total is used up."


async def test_c94_a_long_wait_is_asked_about_once(desk: Desk) -> None:
    desk.refuse(429, "Slow down.", retry_after="3600")
    report = await desk.ask("acme/claude")
    assert (report["api_error_status"], report["requests"]) == (429, [STREAMED])
    assert report["result"].startswith("API Error: Request rejected (429)")


async def test_c94_overload_is_tried_again(desk: Desk) -> None:
    desk.refuse(529, "Busy.")
    report = await desk.ask("acme/claude", CLAUDE_CODE_MAX_RETRIES="2")
    assert (report["api_error_status"], report["requests"]) == (529, [STREAMED] * 3)


async def test_c80_a_prompt_that_is_too_long_leads_to_compaction(desk: Desk) -> None:
    desk.refuse(400, "prompt is too long: 210000 tokens > 200000 maximum")
    report = await desk.ask("acme/claude")
    assert (report["terminal_reason"], report["requests"]) == ("prompt_too_long", [STREAMED])


async def test_c80_a_stream_that_is_cut_comes_back_without_one(desk: Desk) -> None:
    row = ROWS["claude"]
    half = row.write(Answer(words=("Half ", "an answer.")))[:4]
    whole = Script(chunks=row.write(Answer(words=("A whole answer.",))))
    desk.upstream.enqueue(Script(chunks=half, end="close"), whole)
    report = await desk.ask("acme/claude")
    assert (report["result"], report["requests"]) == ("A whole answer.", [STREAMED, False])
    kept = await desk.records()
    assert sorted((it["status"], it["total_cost"] > 0) for it in kept) == [
        ("error", False),
        ("ok", True),
    ]


async def test_c80_its_meter_of_the_context_is_the_providers_count(desk: Desk) -> None:
    desk.upstream.enqueue(*[Script.json(200, {"input_tokens": 4_321})] * 40)
    report = await desk.ask("acme/claude", "/context")
    assert (report["is_error"], report["requests"]) == (False, [])
    assert "Context Usage" in report["result"]
    paths = {received.path for received in desk.upstream.received}
    assert paths == {"/messages/count_tokens"}
    assert await desk.records() == []


async def test_c80_its_list_of_models_is_the_gateways(desk: Desk) -> None:
    # It may ask for a title of the session beside the answer.
    said = ROWS["claude"].write(Answer(words=("Hello.",)))
    desk.upstream.enqueue(*[Script(chunks=said) for _ in range(5)])
    await desk.ask(
        "acme/claude",
        CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY="1",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="",
    )
    kept = json.loads((desk.home / ".claude/cache/gateway-models.json").read_text())
    # Of all models it keeps those whose id has its vendor's name.
    assert kept["models"] == [
        {"id": "acme/claude", "display_name": "claude"},
        {"id": "claude-with-gemini", "display_name": "gemini"},
    ]


async def test_c66_a_session_is_a_label_of_its_records(desk: Desk) -> None:
    writes = Answer(calls=(greeting(desk.folder),), finish="tool_calls")
    row = ROWS["claude"]
    desk.upstream.enqueue(
        *(Script(chunks=row.write(answer)) for answer in (writes, Answer(words=("Done.",))))
    )
    report = await desk.ask("acme/claude")
    labels = [record["labels"] for record in await desk.records()]
    assert {each["session"] for each in labels} == {report["session_id"]}
    assert len(labels) == 2
    assert all(each["device"] for each in labels)
