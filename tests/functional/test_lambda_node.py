"""Streams through the deployed path, read event by event by the official SDKs for Node.

Keeps C7, C35, C37, C80, C81.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.deployment import PATIENCE_S, Deployment, Workspace
from tests.node_sdks import node_program, reading
from tests.upstream.speakers import SPEAKERS, Speaker

pytestmark = pytest.mark.asyncio(loop_scope="session")

WORDS = ["Each", " word", " comes", " by", " itself", ": é", " 🙂"]
COST = {"alpha": 9 * 1_000 + 3 * 2_000, "bedrock": 9 * 3_000 + 3 * 15_000}
# The path of the base URL, and the SDK's word for an answer that is whole.
FORMATS = {
    "chat_completions": ("/v1", "stop"),
    "completions": ("/v1", "stop"),
    "responses": ("/v1", "completed"),
    "messages": ("", "end_turn"),
}


@pytest.mark.parametrize("speaker", SPEAKERS, ids=lambda speaker: speaker.name)
@pytest.mark.parametrize("name", FORMATS)
async def test_c35_the_next_chunk_leaves_only_when_node_has_read_this_one(
    deployment: Deployment, workspace: Workspace, speaker: Speaker, name: str
) -> None:
    node_program()
    path, end = FORMATS[name]
    upstream = deployment.upstreams.of(speaker)
    chunks = speaker.text(WORDS)
    upstream.enqueue(speaker.script(chunks, lock_step=True))
    asking = reading(
        name,
        base_url=f"{deployment.emulator.url}{path}",
        model=speaker.model,
        key=workspace.inference.secret,
    )
    async with asyncio.timeout(PATIENCE_S), asking as lines:
        await upstream.release()  # it says hello, which commits nothing
        await upstream.release()
        for number, word in enumerate(WORDS):
            while (line := await anext(lines)).get("word") in (None, ""):
                assert "final" not in line
            assert line["word"] == word
            if number + 1 < len(WORDS):
                await upstream.release()
        for _ in chunks[len(WORDS) + 1 :]:
            await upstream.release()
        *_, last = [line async for line in lines]
    assert last["final"] == {"text": "".join(WORDS), "end": end, "out": 3}
    await deployment.assert_books_closed(workspace, COST[speaker.name])
