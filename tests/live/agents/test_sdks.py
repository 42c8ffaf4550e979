"""The newest SDKs: words, a stream, a tool and a refusal, in each format that they speak.

Keeps C21, C80.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.live.agents.programs import node_script, python_script
from tests.live.agents.scripts import DONE, VLLM
from tests.live.agents.test_codex import serving
from tests.live.agents.test_stored_clients import run
from tests.local_server import LocalServer
from tests.upstream import FakeUpstream

pytestmark = pytest.mark.asyncio(loop_scope="module")
SCENARIOS = ("words", "stream", "tool")
CLIENTS = {
    "pypi:openai": ("openai_sdk.py", "chat", "responses"),
    "pypi:anthropic": ("anthropic_sdk.py", "messages"),
    "pypi:openai-agents": ("agents_sdk.py", "chat", "responses"),
    "pypi:strands-agents": ("strands_sdk.py", "chat", "responses", "messages"),
    "pypi:langchain": ("langchain_sdk.py", "chat", "responses", "messages"),
    "pypi:openrouter": ("openrouter_sdk.py", "chat", "responses"),
    "npm:openai": ("openai_node.mjs", "chat", "responses"),
    "npm:@anthropic-ai/sdk": ("anthropic_node.mjs", "messages"),
    "npm:ai": ("ai_sdk_formats.mjs", "chat", "responses", "messages"),
    "npm:@openai/agents": ("agents_node.mjs", "chat", "responses"),
    "npm:@openrouter/sdk": ("openrouter_node.mjs", "chat", "responses"),
}


@dataclass(frozen=True)
class Client:
    """A client's package, the script that uses it, and the format that it speaks."""

    package: str
    script: str
    format: str

    def command(self, folder: Path) -> list[str]:
        """Return the command that asks once."""
        if self.script.endswith(".mjs"):
            return node_script(self.script, folder)
        return python_script(self.package.partition(":")[2], self.script)


each_client = pytest.mark.parametrize(
    "client",
    [
        pytest.param(
            Client(package, script, format_),
            marks=pytest.mark.client(package, format_),
            id=f"{package}-{format_}",
        )
        for package, (script, *formats) in CLIENTS.items()
        for format_ in formats
    ],
)


@dataclass(frozen=True)
class Desk:
    """A gateway, the provider behind it, and what clients have shown of three scenarios."""

    upstream: FakeUpstream
    server: LocalServer
    shown: dict[Client, Any] = field(default_factory=dict)

    async def answers(self, client: Client, folder: Path) -> Any:
        """Return what a client shows by scenario; it starts once, since many load for seconds."""
        if client not in self.shown:
            before = len(self.upstream.received)
            called, _, said = VLLM.turns()
            self.upstream.enqueue(said, said, called, said)
            command = [*client.command(folder), client.format, *SCENARIOS]
            self.shown[client] = await run(command, self.server.key, self.server)
            self.shown[client]["results"] = sum(
                b'"done"' in received.body for received in self.upstream.received[before:]
            )
        return self.shown[client]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    async with serving(VLLM, tmp_path_factory.mktemp("gateway")) as (upstream, server):
        yield Desk(upstream, server)


@each_client
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_c80_an_sdk_is_answered(
    desk: Desk, client: Client, scenario: str, tmp_path: Path
) -> None:
    shown = await desk.answers(client, tmp_path)
    assert shown[scenario] == DONE
    if scenario == "tool":
        assert shown["results"] == 1


@each_client
async def test_c80_an_sdk_shows_a_refusal(desk: Desk, client: Client, tmp_path: Path) -> None:
    command = [*client.command(tmp_path), client.format, "words"]
    shown = await run(command, "sk-tg-wrong", desk.server)
    assert "401" in str(shown["words"])
