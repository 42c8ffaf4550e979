"""Clients that expect stored responses, in their default modes, with storage and without.

Keeps C7, C80.
"""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen

import pytest

from tests.live.agents.programs import node_script, python
from tests.live.agents.scripts import DONE, ROWS, Row
from tests.live.agents.test_codex import serving
from tests.local_server import LocalServer, environment

each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
_PATIENCE_S = 120.0
_AGENTS: Final = """
import asyncio, json
from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

@function_tool
def exec_command(cmd: str) -> str:
    "Run a command."
    return "done"

async def main():
    model = OpenAIResponsesModel("acme/agent", AsyncOpenAI(max_retries=0))
    agent = Agent(name="agent", instructions="Be brief.", tools=[exec_command], model=model)
    said = []
    result = await Runner.run(agent, "Write one.txt.")
    said.append(result.final_output)
    turn = [*result.to_input_list(), {"role": "user", "content": "And now?"}]
    said.append((await Runner.run(agent, turn)).final_output)
    error = None
    try:
        result = await Runner.run(agent, "Write one.txt.", auto_previous_response_id=True)
        said.append(result.final_output)
        last = result.last_response_id
        result = await Runner.run(agent, "And now?", previous_response_id=last)
        said.append(result.final_output)
    except Exception as refused:
        error = str(refused)
    print(json.dumps({"said": said, "error": error}))

set_tracing_disabled(True)
asyncio.run(main())
"""


async def run(command: Sequence[str], key: str, server: LocalServer, **more: str) -> Any:
    """Return what a client prints in its last line, as JSON."""
    # Anthropic's SDKs add the version to the base URL; ours must find no module of this checkout.
    names = {
        "BASE_URL": server.base_url,
        "KEY": key,
        "ANTHROPIC_BASE_URL": server.base_url.removesuffix("/v1"),
        "ANTHROPIC_API_KEY": key,
        "PYTHONPATH": "",
    }
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environment()
        | names
        | {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": key}
        | more,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(_PATIENCE_S):
        printed, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()
    return json.loads(printed.splitlines()[-1])


def storing_key(server: LocalServer) -> str:
    """A key whose responses are stored."""
    asked = Request(
        f"{server.base_url}/keys",
        data=json.dumps({"name": "stores", "response_days": 7}).encode(),
        headers={
            "authorization": f"Bearer {server.management_key}",
            "content-type": "application/json",
        },
    )
    with urlopen(asked) as reply:
        made: str = json.load(reply)["key"]
    return made


@pytest.mark.client("npm:ai", "responses")
@each_row
async def test_c80_the_ai_sdk_goes_on_with_storage_by_its_default(row: Row, tmp_path: Path) -> None:
    command = node_script("ai_sdk.mjs", tmp_path)
    async with serving(row, tmp_path) as (upstream, server):
        called, _, said = row.turns()
        upstream.enqueue(called, said, said, said)
        told = await run(command, storing_key(server), server)
    assert told == {"said": [DONE] * 3, "error": None}
    # Each turn refers to the first answer, whose signature comes back.
    assert all(row.sealed(received.json) for received in upstream.received[1:])


@pytest.mark.client("npm:ai", "responses")
@each_row
async def test_c80_the_ai_sdk_loops_without_storage_and_goes_on_with_store_false(
    row: Row, tmp_path: Path
) -> None:
    command = node_script("ai_sdk.mjs", tmp_path)
    async with serving(row, tmp_path) as (upstream, server):
        called, _, said = row.turns()
        upstream.enqueue(called, said)
        told = await run(command, server.key, server)
        assert told["said"] == [DONE]
        assert "--response-days" in told["error"]
        assert "store: false" in told["error"]
        upstream.enqueue(called, said, said, said)
        told = await run(command, server.key, server, STORE="false")
    assert told == {"said": [DONE] * 3, "error": None}


@pytest.mark.client("npm:openai", "responses")
@each_row
async def test_c80_openais_sdk_for_node_reads_lists_and_deletes(row: Row, tmp_path: Path) -> None:
    command = node_script("openai_sdk.mjs", tmp_path)
    async with serving(row, tmp_path) as (upstream, server):
        said = row.turns()[2]
        upstream.enqueue(said, said)
        told = await run(command, storing_key(server), server)
    assert told == {
        "said": [DONE, DONE],
        "continues": True,
        "shown": DONE,
        "items": ["Hi", DONE, "More"],
        "cancelled": 400,
        "deleted": 200,
        "gone": 404,
    }


@pytest.mark.client("pypi:openai-agents", "responses")
@each_row
@pytest.mark.parametrize("stores", [True, False])
async def test_c80_the_agents_sdk_runs_by_its_default_and_by_previous_responses(
    row: Row, tmp_path: Path, stores: bool
) -> None:
    program = python("openai-agents")
    async with serving(row, tmp_path) as (upstream, server):
        called, _, said = row.turns()
        upstream.enqueue(called, said, said, called, *([said, said] if stores else []))
        key = storing_key(server) if stores else server.key
        told = await run([program, "-c", _AGENTS], key, server)
    assert told["said"] == [DONE] * (4 if stores else 2)
    assert told["error"] is None if stores else "--response-days" in told["error"]
    sealed = [row.sealed(received.json) for received in upstream.received]
    assert all(sealed[1:3])
    assert all(sealed[4:])
