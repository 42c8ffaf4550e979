"""Codex finishes a task on every kind of row, to the end and with what it writes on disk.

Keeps C80, C94.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.live.agents.programs import find_agent
from tests.live.agents.scripts import DONE, ROUTING, ROWS, VLLM, Row, broken_off
from tests.local_server import LocalServer, environment, local_server
from tests.upstream import FakeUpstream

pytestmark = pytest.mark.client("npm:@openai/codex", "responses")
_PATIENCE_S = 120.0


def codex() -> str:
    """The program; the test is skipped where there is none."""
    return find_agent("codex")


def config(
    home: Path,
    base_url: str,
    key: str,
    *,
    name: str = "Tollgate",
    limit: int = 150_000,
    websockets: bool = False,
) -> None:
    """Write Codex's settings, as docs/coding-agents.md shows them.

    Codex compacts from `limit` tokens on. With `auth` it asks `GET /models`, without whose answer
    it offers no `apply_patch`.
    """
    home.mkdir()
    (home / "key").write_text(key)
    (home / "config.toml").write_text(
        f"""\
model = "acme/agent"
model_provider = "tollgate"
model_auto_compact_token_limit = {limit}

[model_providers.tollgate]
name = "{name}"
base_url = "{base_url}"
wire_api = "responses"
supports_websockets = {json.dumps(websockets)}

[model_providers.tollgate.auth]
command = "cat"
args = ["{home}/key"]
"""
    )


async def work(program: str, folder: Path, home: Path) -> tuple[int, str]:
    """Let Codex write its files; return its exit status and what it printed."""
    process = await asyncio.create_subprocess_exec(
        program,
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        "Write one.txt and two.txt.",
        cwd=folder,
        env=environment() | {"HOME": str(home), "CODEX_HOME": str(home)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(_PATIENCE_S):
            printed, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, printed.decode()


@asynccontextmanager
async def serving(row: Row, folder: Path) -> AsyncIterator[tuple[FakeUpstream, LocalServer]]:
    """A gateway whose one model has one row, and the provider of that row."""
    routing = folder / "routing.yaml"
    async with FakeUpstream() as upstream:
        routing.write_text(
            ROUTING.format(
                provider=row.provider,
                transport=row.transport,
                url=upstream.url,
                dialect=row.dialect,
            )
        )
        with ExitStack() as stack:
            starting = local_server(folder / "state", routing=routing, extra=row.environment)
            yield upstream, await asyncio.to_thread(stack.enter_context, starting)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_c80_codex_finishes_its_task(row: Row, tmp_path: Path) -> None:
    program = codex()
    folder = tmp_path / "work"
    folder.mkdir()
    async with serving(row, tmp_path) as (upstream, server):
        upstream.enqueue(*row.turns())
        config(tmp_path / "home", server.base_url, server.key)
        status, printed = await work(program, folder, tmp_path / "home")
    assert status == 0, printed
    assert DONE in printed
    assert (folder / "one.txt").read_text() == "one"
    assert (folder / "two.txt").read_text() == "two\n"
    bodies: list[Any] = [received.json for received in upstream.received]
    assert len(bodies) == 3
    assert row.sealed(bodies[1])


async def test_c80_codex_goes_over_to_http_when_its_websocket_is_refused(tmp_path: Path) -> None:
    program = codex()
    folder = tmp_path / "work"
    folder.mkdir()
    async with serving(VLLM, tmp_path) as (upstream, server):
        upstream.enqueue(*VLLM.turns())
        config(tmp_path / "home", server.base_url, server.key, websockets=True)
        status, printed = await work(program, folder, tmp_path / "home")
    assert (status, DONE in printed) == (0, True), printed
    assert printed.count("failed to connect to Responses WebSocket") == 1
    assert "Reconnecting" not in printed


def limited_key(server: LocalServer) -> str:
    """A key whose limit of a day is spent by its first request."""
    asked = Request(
        f"{server.base_url}/keys",
        data=json.dumps({"name": "small", "limits": {"day": "0.000000001"}}).encode(),
        headers={
            "authorization": f"Bearer {server.management_key}",
            "content-type": "application/json",
        },
    )
    with urlopen(asked) as reply:
        made: dict[str, Any] = json.load(reply)
    return str(made["key"])


async def test_c94_codex_says_when_a_limit_starts_anew(tmp_path: Path) -> None:
    program = codex()
    async with serving(VLLM, tmp_path) as (upstream, server):
        *_, said = VLLM.turns()
        upstream.enqueue(said)
        key = await asyncio.to_thread(limited_key, server)
        config(tmp_path / "home", server.base_url, key)
        await work(program, tmp_path, tmp_path / "home")
        status, printed = await work(program, tmp_path, tmp_path / "home")
    assert status != 0
    assert "usage limit" in printed
    assert "Try again at" in printed
    assert len(upstream.received) == 1


@pytest.mark.parametrize(
    ("code", "words"),
    [("overloaded_error", "at capacity"), ("context_length_exceeded", "ran out of room")],
)
async def test_c94_codex_does_not_repeat_what_repeating_cannot_change(
    code: str, words: str, tmp_path: Path
) -> None:
    program = codex()
    async with serving(VLLM, tmp_path) as (upstream, server):
        upstream.enqueue(*broken_off(code))
        config(tmp_path / "home", server.base_url, server.key)
        status, printed = await work(program, tmp_path, tmp_path / "home")
    assert status != 0
    assert words in printed
    assert len(upstream.received) == 1
