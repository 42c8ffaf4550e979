"""The newest SDKs: words, a stream, a tool and a refusal, in each format that they speak.

Keeps C21, C80.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from tests.live.agents.programs import node_script, python_script
from tests.live.agents.scripts import DONE, VLLM
from tests.live.agents.test_codex import serving
from tests.live.agents.test_stored_clients import run
from tests.local_server import LocalServer
from tests.upstream import FakeUpstream

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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[FakeUpstream, LocalServer]]:
    async with serving(VLLM, tmp_path_factory.mktemp("gateway")) as pair:
        yield pair


pytestmark = pytest.mark.asyncio(loop_scope="module")


@each_client
@pytest.mark.parametrize("scenario", ["words", "stream", "tool", "refusal"])
async def test_c80_an_sdk_is_answered(
    served: tuple[FakeUpstream, LocalServer], client: Client, scenario: str, tmp_path: Path
) -> None:
    upstream, server = served
    before = len(upstream.received)
    called, _, said = VLLM.turns()
    answers = {"tool": [called, said], "refusal": []}.get(scenario, [said])
    upstream.enqueue(*answers)
    key = "sk-tg-wrong" if scenario == "refusal" else server.key
    command = [*client.command(tmp_path), client.format, scenario]
    shown = await run(command, key, server)
    bodies = [received.body for received in upstream.received[before:]]
    assert len(bodies) == len(answers), shown
    if scenario == "refusal":
        assert "401" in str(shown["refused"])
        return
    assert shown == {"said": DONE}
    if scenario == "tool":
        assert b'"done"' in bodies[1]
