"""Responses through the deployed path, read by the official SDK in lock-step.

Keeps C5, C35, C80.
"""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from tests.deployment import PATIENCE_S, Deployment, Workspace
from tests.upstream.speakers import SPEAKERS, Call, Speaker

pytestmark = pytest.mark.asyncio(loop_scope="session")
each_speaker = pytest.mark.parametrize("speaker", SPEAKERS, ids=lambda speaker: speaker.name)

WORDS = ["Each", " word", " comes", " by", " itself", ": é", " 🙂"]
COST = {"alpha": 9 * 1_000 + 3 * 2_000, "bedrock": 9 * 3_000 + 3 * 15_000}
CLOCK: Any = {"type": "function", "name": "clock", "parameters": {}, "strict": False}
PATCH: Any = {"type": "custom", "name": "patch"}


@each_speaker
async def test_c35_c80_the_next_event_leaves_only_when_the_client_has_read_this_one(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI, speaker: Speaker
) -> None:
    upstream = deployment.upstreams.of(speaker)
    chunks = speaker.text(WORDS)
    upstream.enqueue(speaker.script(chunks, lock_step=True))
    await upstream.release()  # it says hello, which commits nothing
    await upstream.release()
    async with (
        asyncio.timeout(PATIENCE_S),
        client.responses.stream(model=speaker.model, input="Say it") as stream,
    ):
        said = []
        async for event in stream:
            if event.type == "response.output_text.delta":
                said.append(event.delta)
                await upstream.release()
                if len(said) == len(WORDS):
                    for _ in chunks[len(WORDS) + 1 :]:
                        await upstream.release()
        final = await stream.get_final_response()
    assert said == WORDS
    assert final.output_text == "".join(WORDS)
    assert final.id.startswith("resp_")
    assert final.usage is not None
    assert final.usage.total_tokens == 12
    await deployment.assert_books_closed(workspace, COST[speaker.name])


@each_speaker
async def test_c80_a_loop_of_tools_of_both_kinds(
    deployment: Deployment, client: AsyncOpenAI, speaker: Speaker
) -> None:
    upstream = deployment.upstreams.of(speaker)
    calls = [
        Call(id="call_1", name="clock", pieces=["{}"]),
        Call(id="call_2", name="patch", pieces=['{"input": "*** Be', 'gin"}']),
    ]
    upstream.enqueue(speaker.script(speaker.calls(calls)), speaker.script(speaker.text(["Done"])))
    turn: list[Any] = [{"role": "user", "content": "Go on"}]
    tools = [CLOCK, PATCH]
    first = await client.responses.create(model=speaker.model, input=turn, tools=tools)
    called, patched = first.output
    assert (called.type, patched.type) == ("function_call", "custom_tool_call")
    assert getattr(patched, "input", None) == "*** Begin"
    turn += [item.model_dump(exclude_none=True) for item in first.output]
    turn += [
        {"type": "function_call_output", "call_id": "call_1", "output": "noon"},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "patched"},
    ]
    second = await client.responses.create(model=speaker.model, input=turn, tools=tools)
    assert second.output_text == "Done"
    assert b"noon" in upstream.received[-1].body
    assert b"patched" in upstream.received[-1].body


async def test_c80_what_is_refused_names_its_field(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await client.responses.create(model="alpha/one", input="Hi", previous_response_id="resp_1")
    assert refused.value.param == "previous_response_id"
    assert "needs a stored response" in str(refused.value)
